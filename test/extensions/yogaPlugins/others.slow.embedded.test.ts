/** Plugins of others, from npm, in the gateway as it is built. */

import { readFile, writeFile } from 'node:fs/promises';
import nodeModule from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, it } from 'vitest';
import { newFolder } from '../../support/newFolder.ts';
import { endProcesses, runCli, type ServedGateway, serve } from '../../support/processes.ts';
import { connectSocket } from '../../support/sockets.ts';

const folder = newFolder();
afterAll(endProcesses);

const query = '{ viewer { username league } }';
const changed = '"extensions":{"responseCache":';

/** Sends the query by HTTP, and returns the beginning of the response. */
const send =
  (accept: string, given: object | string, path = '/graphql') =>
  async ({ url, token }: ServedGateway): Promise<string> => {
    const response = await fetch(`${url}${path}${typeof given === 'string' ? given : ''}`, {
      method: typeof given === 'string' ? 'GET' : 'POST',
      headers: { Authorization: `Bearer ${token}`, Accept: accept, 'Content-Type': 'application/json' },
      ...(typeof given !== 'string' && { body: JSON.stringify(given) }),
    });
    const pieces = response.body ?? [];
    let text = '';
    for await (const piece of pieces) {
      text += Buffer.from(piece).toString();
      // A subscription goes on.
      if (text.includes('demo')) return text;
    }
    return text;
  };

async function sendBySocket(operation: string, gateway: ServedGateway): Promise<string> {
  const socket = await connectSocket(gateway, gateway.token);
  socket.send({ id: '1', type: 'subscribe', payload: { query: operation } });
  const result = JSON.stringify(await socket.next());
  socket.socket.terminate();
  return result;
}

const json = 'application/json';
const multipart = 'multipart/mixed;subscriptionSpec=1.0';
const tool = { name: 'graphqlQuery', arguments: { query: `${query} # by a tool` } };
const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: tool };

/** The transports, each with a query of its own: no plugin is called for a response from the cache. */
const transports: Readonly<Record<string, (gateway: ServedGateway) => Promise<string>>> = {
  POST: send(json, { query }),
  GET: send(json, `?query=${encodeURIComponent(query)}`),
  'an event stream': send('text/event-stream', { query }),
  'a multipart stream': send(multipart, { query }),
  'a subscription by an event stream': send('text/event-stream', { query: `subscription ${query}` }),
  'a subscription by a multipart stream': send(multipart, { query: `subscription A ${query}` }),
  'a WebSocket': (gateway) => sendBySocket(`${query} # by a socket`, gateway),
  'a subscription by a WebSocket': (gateway) => sendBySocket(`subscription B ${query}`, gateway),
  'a tool': send('application/json, text/event-stream', call, '/mcp'),
};

it('plugins that count resolvers and change results do so on every transport', async ({ skip }) => {
  skip(!('registerHooks' in nodeModule), 'the bundle can share graphql with plugins on Node 22.15 and later');
  const resolved = join(folder, 'resolved');
  await writeFile(resolved, '');
  const gateway = await serve({
    DATA_DIR: join(folder, 'data'),
    YOGA_PLUGINS: fileURLToPath(new URL('others.mjs', import.meta.url)),
    RESOLVED_FILE: resolved,
    MCP: 'read',
  });
  for (const [name, ask] of Object.entries(transports)) {
    const before = (await readFile(resolved, 'utf8')).length;
    const text = (await ask(gateway)).replaceAll('\\"', '"');
    expect(text, name).toContain('"username":"demo"');
    // A tool shows data and errors alone.
    expect(text.includes(changed), name).toBe(name !== 'a tool');
    const calls = (await readFile(resolved, 'utf8')).slice(before).trim().split('\n');
    const root = name.includes('subscription') ? 'Subscription' : 'Query';
    expect(calls, name).toEqual(['parsed', `${root}.viewer`, 'User.username', 'User.league']);
  }
  // No plugin is called for what the gateway rejects, nor for a response from the cache.
  const before = await readFile(resolved, 'utf8');
  const tooMuch =
    '{ dttTemplates(first: 100) { nodes { sessions(first: 100) { nodes { segments { type } } } } } }';
  expect(await send(json, { query: tooMuch })(gateway)).toContain('BAD_USER_INPUT');
  expect(await transports.POST?.(gateway)).toContain(changed);
  expect(await readFile(resolved, 'utf8')).toBe(before);
});

it.each([
  ['export default {};', 'its default export is not a list of plugins'],
  ['throw new Error("broken");', 'broken'],
])('a module without a list of plugins stops the start with its reason: %s', async (source, reason) => {
  const path = join(folder, 'wrong.mjs');
  await writeFile(path, source);
  const { code, stderr } = await runCli(['serve'], { DATA_DIR: join(folder, 'unused'), YOGA_PLUGINS: path });
  expect(code).toBe(1);
  expect(stderr).toContain(`YOGA_PLUGINS ${path} cannot be used: ${reason}`);
});
