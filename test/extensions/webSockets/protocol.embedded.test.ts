/** WebSockets by the protocol graphql-transport-ws: what its PROTOCOL.md says. */

import { request } from 'node:http';
import type { Socket } from 'node:net';
import { json } from 'node:stream/consumers';
import { CloseCode } from 'graphql-ws';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createToken, revokeToken } from '../../../src/auth/tokens.ts';
import { graphqlOnce, postJson } from '../../support/gateway.ts';
import { gatewayWith } from '../../support/setUp.ts';
import { closeSockets, connectSocket, openSocket, type RawSocket } from '../../support/sockets.ts';

const { gateway, alice } = await gatewayWith(['alice'], {
  settings: { CORS_ORIGINS: 'https://app.example', MAX_SUBSCRIPTIONS: '100' },
  logLevel: 'info',
});
afterEach(closeSockets);

const connect = () => connectSocket(gateway, alice.token);
const initOf = (token: string) => ({
  type: 'connection_init',
  payload: { Authorization: `Bearer ${token}` },
});
const operation = (id: string, query: string, more = {}) => ({
  id,
  type: 'subscribe',
  payload: { query, ...more },
});
const viewer = '{ viewer { username } }';
const viewerOf = (id: string) => [
  { id, type: 'next', payload: { data: { viewer: { username: 'alice' } } } },
  { id, type: 'complete' },
];
const activeName = 'subscription { activeDttTemplate { name } }';
const activate = (index: 0 | 1 | 2) =>
  postJson(gateway, alice.token, `/dtt/templates/${alice.dttTemplates[index]}`, { isActive: true });
const nameOf = (index: number) => ({ activeDttTemplate: { name: `Program ${index} of alice` } });

/** All messages up to the last one of the given operation. */
async function allOf(socket: RawSocket, id: string): Promise<unknown[]> {
  const got: unknown[] = [];
  for (;;) {
    const message = await socket.next();
    got.push(message);
    if (message.id === id && message.type !== 'next') return got;
  }
}

describe('a connection', () => {
  it('takes its token from the payload or from the header', async () => {
    for (const [headers, payload] of [
      [{}, { authorization: `bearer ${alice.token}` }],
      [{ authorization: `Bearer ${alice.token}` }, { Authorization: 'Bearer wrong' }],
    ] as const) {
      const socket = await openSocket(gateway, { headers: { ...headers, 'X-Request-Id': 'named' } });
      socket.send({ type: 'connection_init', payload });
      expect(await socket.next()).toEqual({ type: 'connection_ack', payload: { requestId: 'named' } });
    }
  });

  it.each([
    ['no token', undefined, /^Unauthorized: connection_init needs a payload such as/],
    [
      'an unknown token',
      { Authorization: `Bearer dvt_${'x'.repeat(43)}` },
      /^Unauthorized: the token is unknown or revoked$/,
    ],
  ])('with %s is closed with 4403', async (_, payload, reason) => {
    const socket = await openSocket(gateway);
    socket.send({ type: 'connection_init', payload });
    expect(await socket.closed).toEqual({ code: 4403, reason: expect.stringMatching(reason) });
    const lastInit = () => gateway.log.findLast((line) => line.includes('connection_init'));
    await expect.poll(lastInit).toContain('"status":401');
  });

  it('is closed with 1013, after which clients connect again, when its token cannot be looked up, which is logged', async () => {
    vi.spyOn(gateway.database.pool, 'query').mockRejectedValue(new Error('gone'));
    const socket = await openSocket(gateway);
    socket.send(initOf(`dvt_${'y'.repeat(43)}`));
    expect(await socket.closed).toEqual({ code: 1013, reason: 'Internal server error' });
    expect(gateway.log.join()).toContain('gone');
  });
});

it('a message that only servers send closes the socket', async () => {
  const socket = await connect();
  socket.send({ type: 'connection_ack' });
  expect(await socket.closed).toEqual({ code: CloseCode.BadRequest, reason: 'Invalid message received' });
});

describe('an operation', () => {
  it('that is a query gets its result and a complete message, executed or cached', async () => {
    const socket = await connect();
    const query = 'query ($id: Int!) { dttDevice(databaseId: $id) { bubbleId } }';
    const { hits } = gateway.responseCache.counters;
    for (const id of ['a', 'b', 'c', 'c']) {
      socket.send(operation(id, query, { variables: { id: alice.dttDevices[0] } }));
      expect(await allOf(socket, id)).toEqual([
        { id, type: 'next', payload: { data: { dttDevice: { bubbleId: 'alice-dtt-0' } } } },
        { id, type: 'complete' },
      ]);
    }
    expect(gateway.responseCache.counters.hits).toBeGreaterThan(hits);
  });

  it('that is completed before it has started is not run', async () => {
    await activate(0);
    const socket = await connect();
    const query = `mutation { activateTemplate(template: { databaseId: ${alice.dttTemplates[1]} }) { template { name } } }`;
    // Corked, so that both messages are read at once.
    const connection: Socket = Reflect.get(socket.socket, '_socket');
    connection.cork();
    socket.send(operation('m', query));
    socket.send({ id: 'm', type: 'complete' });
    connection.uncork();
    socket.send(operation('q', viewer));
    expect(await allOf(socket, 'q')).toEqual(viewerOf('q'));
    expect((await graphqlOnce(gateway, alice.token, '{ activeDttTemplate { name } }')).data).toEqual(
      nameOf(0),
    );
  });

  it('has a line in the log by its socket and number, as a request has', async () => {
    const socket = await openSocket(gateway, { headers: { 'X-Request-Id': 'logged' } });
    socket.send(initOf(alice.token));
    await socket.next();
    socket.send(operation('1', viewer));
    await allOf(socket, '1');
    socket.send(operation('2', activeName));
    await socket.next();
    socket.socket.close(1000);
    const lines = () =>
      gateway.log.map((line) => JSON.parse(line)).filter(({ request }) => /^logged/.test(request));
    await expect.poll(lines).toMatchObject([
      { request: 'logged.0', operation: 'connection_init', status: 200 },
      { request: 'logged.1', transport: 'websocket', operation: 'query viewer', status: 200 },
      { request: 'logged.2', operation: 'subscription activeDttTemplate', status: 200 },
      { request: 'logged', method: 'GET', operation: 'websocket', status: 101 },
    ]);
  });
});

it('a token that is revoked closes its sockets with 4403, whether used or idle, and no others', async () => {
  const { token, id } = await createToken(gateway.database.pool, 'alice', 'to revoke');
  const [used, idle, other] = [
    await connectSocket(gateway, token),
    await connectSocket(gateway, token),
    await connect(),
  ];
  used.send(operation('s', activeName));
  await used.next();
  await revokeToken(gateway.database.pool, id);
  for (const socket of [used, idle]) {
    expect(await socket.closed).toEqual({
      code: 4403,
      reason: 'Unauthorized: the token is unknown or revoked',
    });
    // No complete message, so that a client with another token continues its subscriptions.
    expect(socket.unread).toEqual([]);
  }
  other.send(operation('1', viewer));
  expect(await allOf(other, '1')).toEqual(viewerOf('1'));
});

describe('a request for a WebSocket', () => {
  const key = Buffer.alloc(16).toString('base64');
  const usual = {
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': key,
    'Sec-WebSocket-Protocol': 'graphql-transport-ws',
  };

  async function ask(path: string, headers: Record<string, string>) {
    const response = await new Promise<import('node:http').IncomingMessage>((settle, fail) => {
      request(gateway.url + path, { headers: { ...usual, ...headers } }, settle)
        .once('error', fail)
        .end();
    });
    return {
      status: response.statusCode,
      headers: response.headers,
      body: JSON.stringify(await json(response)),
    };
  }

  it.each(['https://app.example', gateway.url])('from a page of %s is accepted', async (origin) => {
    const socket = await openSocket(gateway, { headers: { Origin: origin } });
    expect(socket.socket.readyState).toBe(socket.socket.OPEN);
  });

  const [subprotocol, name] = ['Sec-WebSocket-Protocol', 'graphql-transport-ws'];
  it.each([
    ['at another path', {}, 426, 'WebSockets are opened at /graphql', '/api/v1/dtt'],
    ['with a subprotocol twice', { [subprotocol]: `${name}, ${name}` }, 400, 'Sec-WebSocket-Protocol'],
    ['with another offer', { Upgrade: 'h2c, WebSocket' }, 400, 'Invalid Upgrade header'],
    ['of another version', { 'Sec-WebSocket-Version': '7' }, 400, 'Sec-WebSocket-Version'],
    [
      'from a page of an origin that is not allowed',
      { Origin: 'https://evil.example', [subprotocol]: 'chat, graphql-transport-ws' },
      403,
      'not an origin whose pages may use this gateway',
    ],
  ])('%s is rejected with the reason', async (_, headers, status, message, path = '/graphql') => {
    const response = await ask(path, headers);
    expect(response).toMatchObject({ status, body: expect.stringContaining(message) });
    expect(response.headers['x-request-id']).toBeDefined();
    expect(response.headers.connection).toMatch(/\bclose$/);
    if (status === 426)
      expect(response.headers).toMatchObject({ upgrade: 'websocket', connection: 'Upgrade, close' });
  });
});
