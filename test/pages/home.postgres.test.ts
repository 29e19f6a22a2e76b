import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { complaintAbout, readConfig } from '../../src/config.ts';
import type { Exchange } from '../../src/http/exchange.ts';
import { textResponse } from '../../src/http/response.ts';
import { allLinks, homePage } from '../../src/pages/home.ts';
import { createPages } from '../../src/pages/pages.ts';
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

it('leads a browser to everything that is there', async () => {
  const response = await fetch(gateway.url, { headers: browser });
  expect(response.headers.get('Content-Type')).toBe('text/html; charset=utf-8');
  const page = await response.text();
  const links = [...page.matchAll(/href="(\/[^"]*)"/g)].map(([, path]) => path);
  expect(links).toEqual(allLinks.map(({ path }) => path));
  const responses = await Promise.all(
    links.map((path) => fetch(`${gateway.url}${path}`, { headers: browser })),
  );
  expect(responses.map(({ status }) => status)).toEqual(links.map(() => 200));
});

it('runs the one script and loads the one style that its policy names, and is framed by nobody', async () => {
  const { headers } = await fetch(gateway.url, { headers: browser });
  expect(headers.get('Content-Security-Policy')).toMatch(
    /^default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; style-src 'sha256-[\w+/]{43}='; script-src 'sha256-[\w+/]{43}='; connect-src 'self'; img-src data:$/,
  );
  expect(headers.get('X-Content-Type-Options')).toBe('nosniff');
});

it.each([
  ['style', /<style>(.*)<\/style>/s],
  ['script', /<script type="module">(.*)<\/script>\n<\/body>/s],
])('has the %s that its policy names', async (kind, element) => {
  const response = await fetch(gateway.url, { headers: browser });
  const [, code = ''] = element.exec(await response.text()) ?? [];
  const digest = createHash('sha256').update(code).digest('base64');
  expect(response.headers.get('Content-Security-Policy')).toContain(`${kind}-src 'sha256-${digest}'`);
});

describe('for whoever asks', () => {
  /** The response where neither the reference nor its document is. */
  function responseTo(method: string, headers: Record<string, string>, token?: string, onServer = false) {
    // What the page reads of a request.
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
  ])('has with %s as %s what there is, and the address that was asked', async (method, accept, type) => {
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
  ])('has a command for a token that can be typed, over a server: %s', (onServer, command) => {
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
  });

  it.each([undefined, 'postgresql://me:hunter2@db.example.com/d'])(
    'knows from DATABASE_URL %j what that command takes, and tells nobody which database it is',
    async (DATABASE_URL) => {
      const config = readConfig({ DATABASE_URL });
      const readiness = () => textResponse(200, 'ready');
      const pages = createPages({ config, demoTokenFor: () => undefined, readiness });
      // What the page reads of a request.
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
  ])('says of %j whether a token of the upstream will do, and not which upstream', async (settings, will) => {
    const readiness = () => textResponse(200, 'ready');
    const pages = createPages({ config: readConfig(settings), demoTokenFor: () => undefined, readiness });
    for (const accept of [browser.Accept, '*/*']) {
      // What the page reads of a request.
      const exchange = { path: '/', request: { method: 'GET', headers: { accept } } } as unknown as Exchange;
      const text = (await pages(exchange)).body.toString();
      expect(text.includes('the token that you have for the service behind this gateway')).toBe(will);
      expect(text).toContain('token create');
      expect(text).not.toContain('up.example');
    }
  });

  it.each([undefined, '', 'a b', 'a/b', 'a"b', "a'b", 'a;b', '$(id)'])(
    'has an address that will do for the host %j',
    (host) => {
      const { text } = responseTo('GET', { ...(host !== undefined && { host }) }, 'dvt_x');
      expect(text).toContain("curl localhost:4000/graphql \\\n  -H 'Authorization: Bearer dvt_x'");
    },
  );
});

it('is stored by no cache that others share, since the token of the demo account stands in it', async () => {
  const response = await fetch(gateway.url, { headers: browser });
  expect(await response.text()).toMatch(/Bearer dvt_/);
  expect(response.headers.get('Cache-Control')).toBe('private, no-cache');
});

it('is plain text in a terminal, with commands that work as they are', async () => {
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

it('repeats no host that does not look like one', async () => {
  const page = await new Promise<string>((settle, fail) => {
    request(gateway.url, { headers: { ...browser, Host: "a';b" } }, (response) => settle(text(response)))
      .on('error', fail)
      .end();
  });
  expect(page).not.toContain("a';b");
  expect(page).toContain('localhost:4000');
});

it.each(['/', '/schema.graphql', '/healthz', '/readyz'])('can be read and nothing else: %s', async (path) => {
  const head = await fetch(gateway.url + path, { method: 'HEAD' });
  expect([head.status, await head.text()]).toEqual([200, '']);
  for (const method of ['POST', 'DELETE']) {
    const response = await fetch(gateway.url + path, { method });
    expect([response.status, response.headers.get('Allow')]).toEqual([405, 'GET, HEAD']);
  }
});

it('has the schema as a text', async () => {
  const response = await fetch(`${gateway.url}/schema.graphql`);
  expect(response.headers.get('Content-Type')).toBe('text/plain; charset=utf-8');
  expect(await response.text()).toBe(await readFile('schema.graphql', 'utf8'));
  const headers = { 'If-None-Match': response.headers.get('ETag') ?? '' };
  expect((await fetch(`${gateway.url}/schema.graphql`, { headers })).status).toBe(304);
});
