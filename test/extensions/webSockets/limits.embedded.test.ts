/** The limits of WebSockets: connections, requests, memory and time; and how they end when the gateway closes. */

import { getEventListeners } from 'node:events';
import { afterAll, afterEach, expect, it, vi } from 'vitest';
import { createUpgrades } from '../../../src/extensions/webSockets/upgrades.ts';
import { type Account, createAccount } from '../../support/accounts.ts';
import { type Events, subscribe } from '../../support/events.ts';
import { openTestGateway } from '../../support/gateway.ts';
import { closeSockets, connectSocket, openSocket, type RawSocket } from '../../support/sockets.ts';

let names = 0;
let closing = new AbortController().signal;
const streams: Events[] = [];

const gateway = await openTestGateway(undefined, {
  settings: {
    MAX_SUBSCRIPTIONS: '2',
    MAX_BODY_KB: '1',
    RATE_LIMIT: '20',
    RATE_LIMIT_ANONYMOUS: '4',
  },
  extensions: [
    {
      settings: {},
      open: async (config) => ({
        upgrades: {
          accepts: ({ headers }) => headers.upgrade === 'websocket',
          createHandler(pipeline) {
            closing = pipeline.closing;
            const upgrade = createUpgrades(config, pipeline, 2);
            return async (...given) => upgrade(...given);
          },
        },
      }),
    },
  ],
});
afterEach(() => {
  for (const stream of streams.splice(0)) stream.leave();
  closeSockets();
});
/** The last test closes the gateway. */
let isClosed = false;
afterAll(() => (isClosed ? undefined : gateway?.close()));

const createUser = () => createAccount(gateway.database.client, `user-${++names}`);
const connect = ({ token }: Account) => connectSocket(gateway, token);
const ask = (socket: RawSocket, query: string, id = '1') =>
  socket.send({ id, type: 'subscribe', payload: { query } });
const init = (socket: RawSocket, token: string) =>
  socket.send({ type: 'connection_init', payload: { Authorization: `Bearer ${token}` } });
const live = 'subscription { viewer { username } }';

it('a user may have only so many sockets open, and another one when one has closed', async () => {
  const [alice, bob] = [await createUser(), await createUser()];
  const listening = () => getEventListeners(closing, 'abort').length;
  const before = listening();
  const [first] = [await connect(alice), await connect(alice), await connect(bob)];
  const third = await openSocket(gateway);
  init(third, alice.token);
  const reason = 'There are 2 WebSockets open; at most 2 are allowed';
  expect(await third.closed).toEqual({ code: 1013, reason });
  first?.socket.close(1000);
  await vi.waitFor(() => connect(alice), { timeout: 10_000 });
  const fourth = await openSocket(gateway);
  init(fourth, alice.token);
  expect(await fourth.closed).toEqual({ code: 1013, reason });
  closeSockets();
  await vi.waitFor(() => expect(listening()).toBe(before));
});

it('each operation counts as a request, and gets an error with retryAfter beyond the rate limit', async () => {
  const alice = await createUser();
  const socket = await connect(alice);
  for (let count = 1; count < 20; count++) ask(socket, '{ viewer { username } }', String(count));
  ask(socket, '{ viewer { username } }', 'too many');
  const got: unknown[] = [];
  while (got.length < 2 * 19 + 1) got.push(await socket.next());
  expect(got).toContainEqual({
    id: 'too many',
    type: 'error',
    payload: [
      {
        message: 'Too many requests',
        extensions: { code: 'TOO_MANY_REQUESTS', retryAfter: expect.any(Number) },
      },
    ],
  });
});

it('the subscriptions of a user are counted over all transports', async () => {
  const alice = await createUser();
  streams.push(await subscribe(gateway, alice.token, live));
  const [one, other] = [await connect(alice), await connect(alice)];
  ask(one, live);
  expect(await one.next()).toMatchObject({ type: 'next' });
  ask(other, live);
  expect(await other.next()).toMatchObject({
    type: 'error',
    payload: [
      {
        message: 'There are 2 subscriptions open; at most 2 are allowed',
        extensions: { code: 'TOO_MANY_REQUESTS', retryAfter: 1 },
      },
    ],
  });
  one.send({ id: '1', type: 'complete' });
  // It no longer counts once the gateway has read this message.
  await vi.waitFor(async () => {
    ask(other, live, String(Math.random()));
    expect(await other.next()).toMatchObject({ type: 'next' });
  }, 10_000);
});

it('a query as a stream does not count as a subscription', async () => {
  const alice = await createUser();
  for (let count = 0; count < 2; count++) streams.push(await subscribe(gateway, alice.token, live));
  const query = await subscribe(gateway, alice.token, '{ viewer { rank } }');
  expect([query.response.status, await query.response.text()]).toEqual([
    200,
    expect.stringContaining('"rank":0'),
  ]);
  streams.push(await subscribe(gateway, (await createUser()).token, live));
  expect(streams.at(-1)?.response.status).toBe(200);
});

it('a message may be as large as a body, and a larger one closes the socket', async () => {
  const socket = await openSocket(gateway);
  socket.socket.send('{"type":"ping"}'.padEnd(1024));
  expect(await socket.next()).toEqual({ type: 'pong' });
  socket.socket.send('{"type":"ping"}'.padEnd(1025));
  expect(await socket.closed).toMatchObject({ code: 1009 });
});

it('a message may have 17 fragments, and one with too many closes the socket', async () => {
  const socket = await openSocket(gateway);
  for (let count = 1; count < 17; count++) socket.socket.send(' ', { fin: false });
  socket.socket.send(JSON.stringify({ type: 'ping' }), { fin: true });
  expect(await socket.next()).toEqual({ type: 'pong' });
  for (let count = 0; count < 20; count++) socket.socket.send(' ', { fin: false });
  expect(await socket.closed).toMatchObject({ code: 1008 });
});

it('a reason of more bytes than a close frame may have is left out', async () => {
  const socket = await connect(await createUser());
  for (let times = 0; times < 2; times++) ask(socket, live, 'é'.repeat(80));
  expect(await socket.closed).toEqual({ code: 4409, reason: '' });
});

it('the gateway closes its sockets with 1001, without a complete message for subscriptions', async () => {
  const [socket, unknown] = [await connect(await createUser()), await openSocket(gateway)];
  ask(socket, live);
  await socket.next();
  isClosed = true;
  await gateway.close();
  const closed = { code: 1001, reason: 'The gateway closes' };
  expect(await Promise.all([socket.closed, unknown.closed])).toEqual([closed, closed]);
  expect(socket.unread).toEqual([]);
});
