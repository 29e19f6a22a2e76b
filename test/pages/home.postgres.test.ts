/** The home page, and what all pages have in common. */

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { describe, expect, it, vi } from 'vitest';
import type { Exchange } from '../../src/http/exchange.ts';
import { allLinks } from '../../src/pages/links.ts';
import { createPages } from '../../src/pages/pages.ts';
import { release } from '../../src/version.ts';
import { readConfig } from '../support/settings.ts';
import { databaseWith, gatewayBeside } from '../support/setUp.ts';

const { database, alice } = await databaseWith('alice');
const gateway = await gatewayBeside(database, { shownToken: alice.token });

const browser = { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

it('links a browser to all pages and documents, which all exist, and says both versions', async () => {
  const page = await (await fetch(gateway.url, { headers: browser })).text();
  const [, list = ''] = /<ul>(.*)<\/ul>/s.exec(page) ?? [];
  const links = [...list.matchAll(/<a href="\.([^"]*)"/g)].map(([, path]) => path);
  expect(links).toEqual(allLinks.map(({ path }) => path));
  for (const path of links) {
    const { status } = await fetch(`${gateway.url}${path}`, { headers: browser });
    expect([path, status]).toEqual([path, 200]);
  }
  const { info } = await (await fetch(`${gateway.url}/openapi.json`)).json();
  expect(page).toContain(`Dovetail ${release}, with version ${info.version} of the REST interface`);
});

it('shows a browser the token and commands to copy, and may not be stored by shared caches', async () => {
  const response = await fetch(gateway.url, { headers: browser });
  const page = await response.text();
  const codes = [...page.matchAll(/<pre tabindex="0"><code>(.*?)<\/code><\/pre>/gs)].map(([, code]) => code);
  expect(codes).toEqual([
    expect.stringMatching(/^curl [^<&]*\/graphql /),
    expect.stringMatching(/^curl [^<&]*\/api\/v1\/dtt\/templates\/active /),
    expect.stringMatching(/^dvt_[\w-]{43}$/),
    'npx dovetail-gateway token create --user NAME --name first --scope manage',
  ]);
  expect(response.headers.get('Cache-Control')).toBe('private, no-cache');
  expect(response.headers.get('Vary')).toBe('Authorization, Host, X-Forwarded-Proto');
});

it('has a policy that allows its script, its style and frames of its own origin only', async () => {
  const response = await fetch(gateway.url, { headers: browser });
  const page = await response.text();
  const digestOf = (element: RegExp) =>
    createHash('sha256')
      .update(element.exec(page)?.[1] ?? '')
      .digest('base64');
  const style = digestOf(/<style>(.*)<\/style>/s);
  const theme = digestOf(/<script>(.*?)<\/script>/s);
  const script = digestOf(/<script type="module">(.*)<\/script>/s);
  expect(response.headers.get('Content-Security-Policy')).toBe(
    `default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; style-src 'sha256-${style}'; script-src 'sha256-${script}' 'sha256-${theme}'; img-src data:; connect-src 'self'`,
  );
});

it('has commands for HTTPS behind a proxy whose clients use it', async () => {
  const page = await (await fetch(gateway.url, { headers: { 'X-Forwarded-Proto': 'https' } })).text();
  expect(page.match(/(?<=<code>)curl \S+/g)).toEqual([
    `curl ${gateway.url.replace('http:', 'https:')}/graphql`,
    `curl ${gateway.url.replace('http:', 'https:')}/api/v1/dtt/templates/active`,
  ]);
});

it('has commands that work unchanged', async () => {
  const page = await (await fetch(gateway.url)).text();
  const commands = [...page.matchAll(/<code>(curl .*?)<\/code>/gs)].map(([, command = '']) => command);
  const responses = await Promise.all(
    commands.map((command) => promisify(execFile)('sh', ['-c', command.replace('curl', 'curl -sS')])),
  );
  expect(responses.map(({ stdout }) => JSON.parse(stdout))).toEqual([
    { data: { viewer: { username: 'alice' } } },
    { ok: true, data: null },
  ]);
});

async function pageWith(
  env: Record<string, string>,
  { host, use, token }: { host?: string | undefined; use?: string; token?: string } = {},
): Promise<string> {
  const feed = { listening: true };
  const accounts = use === undefined ? undefined : { use, arriving: '' };
  const pages = createPages({ config: readConfig(env), database, feed, accounts }, () => token);
  // Only the members that the page reads.
  const exchange = { path: '/', request: { method: 'GET', headers: { host } } } as unknown as Exchange;
  return (await pages(exchange)).body.toString();
}

it('has no form that sends queries, and no command for one, with PERSISTED_OPERATIONS=only', async () => {
  const only = { PERSISTED_OPERATIONS: 'only', PERSISTED_OPERATIONS_FILE: 'f.json' };
  const page = await pageWith(only, { token: 'dvt_x' });
  expect(page).not.toMatch(/id="demo"|\/graphql /);
  expect(page).toContain('Bearer dvt_x');
});

describe('without a demo token', () => {
  it.each([
    ['npx dovetail-gateway', ''],
    ['docker compose exec gateway dovetail', 'docker compose exec gateway dovetail'],
  ])('has the commands that create an account, as they are run here: %s', async (program, given) => {
    vi.stubEnv('DOVETAIL_COMMAND', given);
    const page = await pageWith({ DATABASE_URL: 'postgresql://me:hunter2@db.example.com/d' });
    expect(page).not.toContain('id="demo"');
    expect(page).toContain(`${program} token create --user NAME --name first --scope manage`);
    expect(page).toContain('Bearer YOUR_API_TOKEN');
    expect(page).not.toMatch(/hunter2|db\.example\.com/);
  });

  it('says where accounts come from if they live elsewhere, and not how to get a demo account', async () => {
    const page = await pageWith({ DATA_DIR: 'd' }, { use: 'Use your token. ' });
    expect(page).toContain('Use your token. A token for a user');
    expect(page).not.toContain('dovetail demo');
  });

  it.each([undefined, '', 'a b', 'a/b', 'a"b', "a'b", 'a;b', '$(id)'])(
    'has the address localhost for the missing or invalid host %j',
    async (host) => {
      expect(await pageWith({}, { host })).toContain('curl localhost:4000/graphql');
    },
  );

  it('does not list what the settings switch off', async () => {
    const page = await pageWith({ INTROSPECTION: 'off', GRAPHIQL: 'off' });
    expect(page).not.toMatch(/\/docs|\/openapi|\/schema|GraphiQL/);
  });
});

it.each(['/', '/schema', '/schema.graphql', '/healthz', '/readyz', '/docs', '/openapi.json', '/console'])(
  'every page accepts only GET and HEAD: %s',
  async (path) => {
    const head = await fetch(gateway.url + path, { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
    const post = await fetch(gateway.url + path, { method: 'POST' });
    expect([post.status, post.headers.get('Allow')]).toEqual([405, 'GET, HEAD']);
    expect(await post.text()).toBe('Only GET and HEAD.\n');
  },
);

it('an address without a page is a 404', async () => {
  const response = await fetch(`${gateway.url}/consoles`);
  const found = [response.status, await response.text(), response.headers.get('Vary')];
  expect(found).toEqual([404, 'Not found. The home page lists all pages.\n', 'Accept, Authorization']);
});

it.each(['/docs', '/schema', '/guides', '/graphiql', '/openapi.json'])(
  'a slash behind %s leads to the page, behind a prefix too',
  async (path) => {
    const response = await fetch(`${gateway.url}${path}/`, { redirect: 'manual' });
    expect([response.status, response.headers.get('Location')]).toEqual([308, `..${path}`]);
    expect((await fetch(`${gateway.url}${path}/`)).url).toBe(`${gateway.url}${path}`);
  },
);

it('the schema is served as plain text', async () => {
  const response = await fetch(`${gateway.url}/schema.graphql`);
  expect(response.headers.get('Content-Type')).toBe('text/plain; charset=utf-8');
  expect(await response.text()).toBe(await readFile('schema.graphql', 'utf8'));
});
