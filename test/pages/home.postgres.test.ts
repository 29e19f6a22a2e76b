import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { complaintAbout, readConfig } from '../../src/config/config.ts';
import type { Exchange } from '../../src/http/exchange.ts';
import { textResponse } from '../../src/http/response.ts';
import { allLinks, homePage } from '../../src/pages/home.ts';
import { createPages } from '../../src/pages/pages.ts';
import { release } from '../../src/version.ts';
import { createAccount } from '../support/accounts.ts';
import { openTestDatabase, openTestGateway, type TestGateway } from '../support/gateway.ts';

let gateway: TestGateway;
beforeAll(async () => {
  const database = await openTestDatabase();
  const { token } = await createAccount(database.client, 'alice');
  gateway = await openTestGateway(database, { demoToken: token });
});
afterAll(() => gateway?.close());

const browser = { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

it('the home page links a browser to all pages and documents, which all exist', async () => {
  const response = await fetch(gateway.url, { headers: browser });
  expect(response.headers.get('Content-Type')).toBe('text/html; charset=utf-8');
  const page = await response.text();
  const [content, footer = ''] = page.split('<footer>');
  const linksIn = (html = '') =>
    [...html.matchAll(/<a href="(\/[^"]*)"[^>]*>([^<]*)/g)].map(([, path, name]) => `${path} ${name}`);
  expect(linksIn(content)).toEqual([
    '/console Console',
    '/graphql GraphiQL',
    '/docs REST reference',
    '/openapi.json OpenAPI',
    '/schema.graphql Schema',
  ]);
  expect(linksIn(footer)).toEqual(['/healthz Health', '/readyz Readiness']);
  expect(footer).toContain(`Dovetail ${release} · <a`);
  const links = allLinks.map(({ path }) => path);
  const responses = await Promise.all(
    links.map((path) => fetch(`${gateway.url}${path}`, { headers: browser })),
  );
  expect(responses.map(({ status }) => status)).toEqual(links.map(() => 200));
});

it('the home page shows the token and code to copy, in which no character is taken for HTML', async () => {
  const page = await (await fetch(gateway.url, { headers: browser })).text();
  const codes = [...page.matchAll(/<pre tabindex="0"><code>(.*?)<\/code><\/pre>/gs)].map(([, code]) => code);
  expect(codes[0]).toMatch(/^dvt_[\w-]{43}$/);
  expect(codes.at(-1)).toMatch(/^&lt;script type="module">\n[^<]*&lt;\/script>$/);
});

it('the home page has a policy that allows one script, one style and no framing', async () => {
  const { headers } = await fetch(gateway.url, { headers: browser });
  expect(headers.get('Content-Security-Policy')).toMatch(
    /^default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; style-src 'sha256-[\w+/]{43}='; script-src 'sha256-[\w+/]{43}='; connect-src 'self'; img-src data:$/,
  );
  expect(headers.get('X-Content-Type-Options')).toBe('nosniff');
});

it.each([
  ['style', /<style>(.*)<\/style>/s],
  ['script', /<script type="module">(.*)<\/script>\n<\/body>/s],
])('the home page contains the %s whose hash is in its policy', async (kind, element) => {
  const response = await fetch(gateway.url, { headers: browser });
  const [, code = ''] = element.exec(await response.text()) ?? [];
  const digest = createHash('sha256').update(code).digest('base64');
  expect(response.headers.get('Content-Security-Policy')).toContain(`${kind}-src 'sha256-${digest}'`);
});

describe('the text of the home page', () => {
  /** The response of a gateway that has neither the reference nor its document. */
  function responseTo(method: string, headers: Record<string, string>, token?: string, onServer = false) {
    // Only the members that the page reads.
    const exchange = { request: { method, headers } } as unknown as Exchange;
    const isThere = (path: string) => !/docs|openapi/.test(path);
    const options = { demoToken: token, isThere, onServer, takesUpstreamTokens: false };
    const { status, headers: sent, body } = homePage(exchange, options);
    return { status, headers: sent, text: body.toString() };
  }

  it.each([
    ['GET', browser.Accept, 'text/html; charset=utf-8'],
    ['HEAD', browser.Accept, 'text/html; charset=utf-8'],
    ['GET', '*/*', 'text/plain; charset=utf-8'],
  ])('has with %s as %s the paths that exist, and the host of the request', async (method, accept, type) => {
    const { status, headers, text } = responseTo(method, { accept, host: '[::1]:4321' });
    expect({ status, headers }).toEqual({
      status: 200,
      headers: expect.objectContaining({
        'Content-Type': type,
        'Content-Length': Buffer.byteLength(text),
        'Cache-Control': 'private, no-cache',
        Vary: 'Accept, Authorization, Host',
      }),
    });
    for (const { path } of allLinks) expect(text.includes(path)).toBe(!/docs|openapi/.test(path));
    expect(text).toContain('curl [::1]:4321/graphql');
    expect(text.match(/Bearer YOUR_API_TOKEN/g)).toHaveLength(type.startsWith('text/html') ? 3 : 2);
  });

  it.each([
    [false, 'npx dovetail token create --user NAME --name first'],
    [
      true,
      'DATABASE_URL=postgresql://user:password@host:5432/database npx dovetail token create --user NAME --name first',
    ],
  ])(
    'has a command that creates a token, with a valid DATABASE_URL over a server: %s',
    (onServer, command) => {
      for (const accept of [browser.Accept, '*/*']) {
        const { text } = responseTo('GET', { accept }, undefined, onServer);
        const [, found] =
          /^(?:<div class="code"><pre tabindex="0"><code>| {2})?(.*token create[^<\n]*)/m.exec(text) ?? [];
        expect(found).toBe(command);
        expect(
          complaintAbout('DATABASE_URL', /DATABASE_URL=(\S+)/.exec(command)?.[1] ?? 'postgresql://h/d'),
        ).toBe(undefined);
        expect(responseTo('GET', { accept }, 'dvt_x', onServer).text).toContain(command);
      }
    },
  );

  it.each([undefined, 'postgresql://me:hunter2@db.example.com/d'])(
    'has that command for DATABASE_URL %j, without the address of the database',
    async (DATABASE_URL) => {
      const config = readConfig({ DATABASE_URL });
      const readiness = () => textResponse(200, 'ready');
      const pages = createPages({ config, demoTokenFor: () => undefined, readiness });
      // Only the members that the page reads.
      const exchange = { path: '/', request: { method: 'GET', headers: {} } } as unknown as Exchange;
      const text = (await pages(exchange)).body.toString();
      expect(text.includes('  DATABASE_URL=')).toBe(DATABASE_URL !== undefined);
      expect(text).not.toMatch(/hunter2|db\.example\.com/);
    },
  );

  it.each([
    [{ UPSTREAM_URL: 'https://up.example/api/v1' }, true],
    [{ UPSTREAM_URL: 'https://up.example/api/v1', UPSTREAM_TOKEN: 'x' }, false],
    [{}, false],
  ])(
    'says for %j whether a token of the upstream is accepted, without the address of the upstream',
    async (settings, will) => {
      const readiness = () => textResponse(200, 'ready');
      const pages = createPages({ config: readConfig(settings), demoTokenFor: () => undefined, readiness });
      for (const accept of [browser.Accept, '*/*']) {
        // Only the members that the page reads.
        const exchange = {
          path: '/',
          request: { method: 'GET', headers: { accept } },
        } as unknown as Exchange;
        const text = (await pages(exchange)).body.toString();
        expect(text.includes('the token that you have for the service behind this gateway')).toBe(will);
        expect(text).toContain('token create');
        expect(text).not.toContain('up.example');
      }
    },
  );

  it.each([undefined, '', 'a b', 'a/b', 'a"b', "a'b", 'a;b', '$(id)'])(
    'has the address localhost for the missing or invalid host %j',
    (host) => {
      const { text } = responseTo('GET', { ...(host !== undefined && { host }) }, 'dvt_x');
      expect(text).toContain("curl localhost:4000/graphql \\\n  -H 'Authorization: Bearer dvt_x'");
    },
  );
});

it('the home page may not be stored by shared caches, since it contains the token of the demo account', async () => {
  const response = await fetch(gateway.url, { headers: browser });
  expect(await response.text()).toMatch(/Bearer dvt_/);
  expect(response.headers.get('Cache-Control')).toBe('private, no-cache');
});

it('the home page is plain text in a terminal, with commands that work unchanged', async () => {
  const response = await fetch(gateway.url);
  expect(response.headers.get('Content-Type')).toBe('text/plain; charset=utf-8');
  const page = await response.text();
  for (const { path } of allLinks) expect(page).toContain(`  ${path} `);
  const commands = page.match(/^curl .*(?:\n {2}.*)*$/gm) ?? [];
  const responses = await Promise.all(
    commands.map((command) => promisify(execFile)('sh', ['-c', command.replace('curl', 'curl -sS')])),
  );
  expect(responses.map(({ stdout }) => JSON.parse(stdout))).toEqual([
    { data: { viewer: { username: 'alice' } } },
    { ok: true, data: null },
  ]);
});

it('the home page does not repeat an invalid Host header', async () => {
  const page = await new Promise<string>((settle, fail) => {
    request(gateway.url, { headers: { ...browser, Host: "a';b" } }, (response) => settle(text(response)))
      .on('error', fail)
      .end();
  });
  expect(page).not.toContain("a';b");
  expect(page).toContain('localhost:4000');
});

it.each(['/', '/schema.graphql', '/healthz', '/readyz'])(
  'only GET and HEAD are accepted: %s',
  async (path) => {
    const head = await fetch(gateway.url + path, { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
    for (const method of ['POST', 'DELETE']) {
      const response = await fetch(gateway.url + path, { method });
      expect([response.status, response.headers.get('Allow')]).toEqual([405, 'GET, HEAD']);
    }
  },
);

it.each([
  ['/graphql/', true],
  ['/GraphQL', true],
  ['//graphql', true],
  ['/api/graphql', true],
  ['/api//graphql', true],
  ['/graphqls', false],
  ['/x/graphql', false],
  ['/apigraphql', false],
])('the 404 of %s says where GraphQL is: %s', async (path, isHinted) => {
  const response = await fetch(gateway.url + path);
  const hint = isHinted ? 'GraphQL is at /graphql, without a slash behind it. ' : '';
  expect([response.status, await response.text()]).toEqual([
    404,
    `Not found. ${hint}The home page lists all pages.\n`,
  ]);
});

it('the schema is served as plain text', async () => {
  const response = await fetch(`${gateway.url}/schema.graphql`);
  expect(response.headers.get('Content-Type')).toBe('text/plain; charset=utf-8');
  expect(await response.text()).toBe(await readFile('schema.graphql', 'utf8'));
  const headers = { 'If-None-Match': response.headers.get('ETag') ?? '' };
  expect((await fetch(`${gateway.url}/schema.graphql`, { headers })).status).toBe(304);
});
