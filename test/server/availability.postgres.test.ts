/** The database is away for a while: what clients get on every transport, and what the log says. */

import { tmpdir } from 'node:os';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openDatabase } from '../../src/database/database.ts';
import { type Account, createAccount } from '../support/accounts.ts';
import {
  graphqlOnce,
  openTestDatabase,
  openTestGateway,
  postJson,
  rest,
  type TestDatabase,
  type TestGateway,
  withClient,
} from '../support/gateway.ts';
import { connectSocket } from '../support/sockets.ts';
import { openTcpProxy, type TcpProxy } from '../support/tcpProxy.ts';

const message = 'The database cannot be reached; try again';

let database: TestDatabase;
let proxy: TcpProxy;
let gateway: TestGateway;
let alice: Account;
beforeAll(async () => {
  database = await openTestDatabase();
  alice = await createAccount(database.client, 'alice');
  proxy = await openTcpProxy(database);
  const opened = withClient(await openDatabase({ DATABASE_URL: proxy.url, DATA_DIR: tmpdir() }));
  gateway = await openTestGateway(opened, { settings: { MCP: 'write' }, logLevel: 'info' });
});
afterAll(async () => {
  await gateway?.close();
  await proxy?.close();
  await database?.close();
});

const lines = () => gateway.log.map((line) => JSON.parse(line)).filter(({ msg }) => msg !== 'responded');
const other = `dvt_${'b'.repeat(43)}`;

/** Asks on every transport, with a known token and one that has to be looked up. */
async function ask() {
  const away = [
    await rest(gateway, alice.token, '/dtt/sessions'),
    await rest(gateway, other, '/dtt/sessions'),
    await postJson(gateway, alice.token, `/dtt/templates/${alice.dttTemplates[0]}`, { isActive: true }),
  ];
  for (const { status, headers, body } of away) {
    expect({ status, body }).toEqual({ status: 503, body: { ok: false, error: message } });
    expect(headers.get('Retry-After')).toBe('1');
  }
  const query = '{ dttSessions { totalCount } }';
  // A query is compiled the second time.
  for (const token of [alice.token, alice.token, other]) {
    const { status, headers, errors } = await graphqlOnce(gateway, token, query);
    expect([status, headers.get('Retry-After')]).toEqual([503, '1']);
    expect(errors).toMatchObject([{ message, extensions: { code: 'SERVICE_UNAVAILABLE' } }]);
  }
  const called = await fetch(`${gateway.url}/mcp`, {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${alice.token}`,
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'graphqlQuery', arguments: { query } },
    }),
  });
  expect(await called.text()).toContain(message);
}

it('requests get a 503 until it is back, and the log has a line when it goes and one when it is back', async () => {
  const socket = await connectSocket(gateway, alice.token);
  expect((await rest(gateway, alice.token, '/users/me')).status).toBe(200);
  await proxy.refuse();
  await ask();
  socket.send({ id: '1', type: 'subscribe', payload: { query: '{ lkbxDevices { totalCount } }' } });
  expect(await socket.next()).toMatchObject({
    type: 'error',
    payload: [{ message, extensions: { code: 'SERVICE_UNAVAILABLE', retryAfter: 1 } }],
  });
  expect((await fetch(`${gateway.url}/readyz`)).status).toBe(503);
  const ofDatabase = () => lines().filter(({ msg }) => /^the database/.test(msg));
  expect(ofDatabase()).toMatchObject([{ level: 50, why: expect.stringMatching(/ECONN|terminated/) }]);
  expect(lines().filter(({ msg }) => msg === 'request failed')).toEqual([]);

  await proxy.accept();
  await expect.poll(async () => (await rest(gateway, alice.token, '/dtt/sessions')).status).toBe(200);
  expect(ofDatabase()).toHaveLength(2);
  const [, back] = ofDatabase();
  expect(back).toMatchObject({ level: 30, msg: 'the database is back' });
});
