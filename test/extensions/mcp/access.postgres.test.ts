/** Access to the tools, and the limits of calls, which are those of the request that a call stands for. */

import { execFile } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { blocksOf, readPage } from '../../docs/markdown.ts';
import { createAccount } from '../../support/accounts.ts';
import { rest, type TestGateway } from '../../support/gateway.ts';
import { gatewayBeside, gatewayWith } from '../../support/setUp.ts';
import { connect, operationsFile } from '../../support/toolClient.ts';

const { gateway, alice } = await gatewayWith(['alice'], {
  settings: { MCP: 'read', CORS_ORIGINS: 'https://app.example.com' },
});

/** Another gateway, on the same database. */
const serve = (settings: Record<string, string> = {}, logLevel = 'error') =>
  gatewayBeside(gateway.database, { settings: { MCP: 'read', ...settings }, logLevel });

interface RequestOptions {
  readonly token?: string;
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: unknown;
}

const call = (name: string, given: object = {}) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name, arguments: given },
});

/** Sends a request without the SDK, as a hostile client could. */
async function ask({ url }: TestGateway, { token, method = 'POST', headers = {}, body }: RequestOptions) {
  const response = await fetch(`${url}/mcp`, {
    method,
    headers: {
      Accept: 'application/json, text/event-stream',
      'Content-Type': 'application/json',
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
      ...headers,
    },
    ...(method === 'POST' && {
      body: typeof body === 'string' ? body : JSON.stringify(body ?? call('getCurrentUser')),
    }),
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

describe('a client without a valid token', () => {
  it('gets 401 for every method', async () => {
    for (const method of ['initialize', 'tools/list', 'resources/list', 'ping'])
      expect((await ask(gateway, { body: { jsonrpc: '2.0', id: 1, method } })).status).toBe(401);
    const none = await ask(gateway, {});
    expect(none.headers.get('WWW-Authenticate')).toBe('Bearer');
    expect(JSON.parse(none.text)).toEqual({
      jsonrpc: '2.0',
      id: null,
      error: { code: -32000, message: expect.stringMatching(/^Unauthorized: the request has no/) },
    });
    expect((await ask(gateway, { token: 'dvt_unknown' })).headers.get('WWW-Authenticate')).toMatch(
      /invalid_token/,
    );
  });
});

describe('the MCP endpoint', () => {
  it('counts a call as one request, together with requests to the other APIs', async () => {
    const limited = await serve({ RATE_LIMIT: '5' });
    const { token } = await createAccount(gateway.database.client, 'limited');
    await rest(limited, token, '/users/me');
    for (let count = 0; count < 4; count++) expect((await ask(limited, { token })).status).toBe(200);
    const over = await ask(limited, { token });
    expect(over.status).toBe(429);
    expect(over.headers.get('Retry-After')).toMatch(/^\d+$/);
    expect(JSON.parse(over.text).error.message).toBe('Too many requests');
  });

  it('rejects an invalid body with an error code of JSON-RPC', async () => {
    const batch = JSON.stringify([{ ...call('getCurrentUser'), id: 1 }]);
    for (const [body, code, message] of [
      ['{', -32_700, expect.stringMatching(/^The body is not JSON: Expected property name/)],
      ['', -32_700, 'The body is empty'],
      [batch, -32_600, 'The body must be one JSON-RPC request; batches are not supported'],
      ['{"jsonrpc":"2.0","id":1}', -32_600, expect.any(String)],
    ] as const) {
      const { text } = await ask(gateway, { token: alice.token, body });
      expect(JSON.parse(text)).toEqual({ jsonrpc: '2.0', id: null, error: { code, message } });
    }
  });

  it.each<[what: string, body: string, status: number]>([
    [
      'a body that is too large',
      JSON.stringify({ ...call('getCurrentUser'), more: 'x'.repeat(300_000) }),
      413,
    ],
    ['a request for a stream', '{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}', 400],
    [
      'too many values in the information about the client',
      `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientInfo":{"icons":[${'0,'.repeat(99_999)}0]}}}`,
      400,
    ],
    [
      'deep nesting',
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${'['.repeat(9_000)}${']'.repeat(9_000)}}`,
      400,
    ],
  ])('rejects %s', async (_, body, status) => {
    expect((await ask(gateway, { token: alice.token, body })).status).toBe(status);
    expect(gateway.log).toEqual([]);
  });

  it('does not send a message as its response', async () => {
    const forged = {
      status: 299,
      headers: { 'X-Forged': '1', 'Content-Length': 0 },
      body: 'HTTP/1.1 200 OK',
    };
    const body = { jsonrpc: '2.0', id: 1, method: 'unknown', ...forged };
    const { status, headers, text } = await ask(gateway, { token: alice.token, body });
    expect(status).not.toBe(299);
    expect([headers.has('X-Forged'), headers.get('Cache-Control')]).toEqual([false, 'no-store']);
    expect(JSON.parse(text)).toHaveProperty('jsonrpc', '2.0');
  });

  it('rejects methods other than POST with 405', async () => {
    const { status, headers } = await ask(gateway, { token: alice.token, method: 'GET' });
    expect([status, headers.get('Allow')]).toEqual([405, 'POST']);
  });
});

describe('a page in a browser', () => {
  it('gets 403 unless CORS_ORIGINS has its origin, even if that seems to be the gateway’s own', async () => {
    const { token } = alice;
    const own = new URL(gateway.url);
    for (const Origin of ['https://evil.example.com', own.origin, 'null', `http://localhost:${own.port}`])
      expect((await ask(gateway, { token, headers: { Origin } })).status, Origin).toBe(403);
    const named = await ask(gateway, { token, headers: { Origin: 'https://app.example.com' } });
    expect([named.status, named.headers.get('Access-Control-Allow-Origin')]).toEqual([
      200,
      'https://app.example.com',
    ]);
  });
});

describe('the setting', () => {
  it('MCP=off, the default, has the 404 of the path say how to switch the tools on', async () => {
    const off = await serve({ MCP: 'off' });
    const response = await fetch(`${off.url}/mcp`);
    const hint = 'The setting MCP, which is off, switches the tools for language models on.';
    expect([response.status, await response.text()]).toEqual([404, `Not found. ${hint}\n`]);
    const page = await fetch(`${off.url}/mcp`, { headers: { Accept: 'text/html' } });
    expect(await page.text()).toContain(hint);
  });

  it('MCP=read removes all tools that change data', async () => {
    const file = await operationsFile();
    const reading = await serve({ PERSISTED_OPERATIONS_FILE: file });
    const client = await connect(reading, alice.token);
    const { tools } = await client.listTools();
    expect(tools.filter(({ annotations }) => annotations?.readOnlyHint !== true)).toEqual([]);
    for (const [name, given] of [
      ['activateDttTemplate', { id: alice.dttTemplates[1] }],
      ['Activate', { template: alice.dttTemplates[1] }],
    ] as const)
      await expect(client.callTool({ name, arguments: given })).rejects.toThrow('There is no tool');
    const active = await client.callTool({ name: 'getActiveDttTemplate', arguments: {} });
    expect(active.structuredContent).toEqual({ data: null });
    await client.close();
  });

  it('PERSISTED_OPERATIONS=only removes the tool graphqlQuery, and leaves those of the file as it is now', async () => {
    const file = await operationsFile();
    const only = await serve({ PERSISTED_OPERATIONS: 'only', PERSISTED_OPERATIONS_FILE: file });
    const client = await connect(only, alice.token);
    const names = (await client.listTools()).tools.map(({ name }) => name);
    expect(names).toContain('Devices');
    expect(names).not.toContain('graphqlQuery');
    expect((await client.callTool({ name: 'Devices', arguments: {} })).isError).toBeUndefined();
    writeFileSync(file, '"Another." query Another { viewer { id } }');
    const namesNow = async () => (await client.listTools()).tools.map(({ name }) => name);
    await expect.poll(namesNow).toEqual([...names.slice(0, names.indexOf('SessionsOfTrainer')), 'Another']);
    await client.close();
  });

  it('INTROSPECTION=off removes the resource with the schema', async () => {
    const client = await connect(gateway, alice.token);
    const { resources } = await client.listResources();
    const [{ uri } = expect.fail('there is none')] = resources;
    const { contents } = await client.readResource({ uri });
    expect(contents[0]).toMatchObject({ text: expect.stringContaining('type DttSession implements Node') });
    await expect(client.readResource({ uri: 'dovetail://other' })).rejects.toThrow();
    await client.close();

    const closed = await serve({ INTROSPECTION: 'off' });
    const without = await connect(closed, alice.token);
    expect(without.getServerCapabilities()).not.toHaveProperty('resources');
    await without.close();
  });
});

it('a call is logged in one line with its operation, and without text from the client', async () => {
  const logging = await serve({}, 'info');
  const query = call('graphqlQuery', { query: '{ viewer { username } }' });
  for (const body of [
    call('getDttDevice', { id: alice.dttDevices[0] }),
    call('graphqlQuery', { query: '{ viewer { nothing } }' }),
    // The second response is from the cache.
    ...[query, query],
    { jsonrpc: '2.0', id: 1, method: 'made/up' },
  ])
    await ask(logging, { token: alice.token, body });
  const lines = logging.log.map((line) => JSON.parse(line));
  expect(lines).toMatchObject([
    { endpoint: 'mcp', operation: 'GET /dtt/{id}', status: 200 },
    { endpoint: 'mcp', status: 200, code: 'BAD_USER_INPUT' },
    { endpoint: 'mcp', operation: 'query viewer', status: 200 },
    { endpoint: 'mcp', operation: 'query viewer', status: 200 },
    { endpoint: 'mcp' },
  ]);
  expect(JSON.stringify(lines)).not.toMatch(/made\/up|nothing/);
});

it('the example program of docs/tools.md prints the tools and the results of two of them', async () => {
  const program = blocksOf(readPage('docs/tools.md')).find(({ text }) => text.startsWith('// ask.mjs'));
  const folder = resolve('test/extensions/mcp/generated');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  writeFileSync(`${folder}/ask.mjs`, program?.text ?? '');
  const env = { ...process.env, MCP_URL: `${gateway.url}/mcp`, TOKEN: alice.token };
  const { stdout } = await promisify(execFile)(process.execPath, [`${folder}/ask.mjs`], { env });
  expect(stdout).toMatch(/^listUsers getCurrentUser getUser listDttDevices .* graphqlQuery\n/);
  expect(stdout).toMatch(/bubble_id: 'alice-/);
  expect(stdout).toMatch(/totalCount: \d/);
});
