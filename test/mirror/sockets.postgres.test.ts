/** A token of the upstream over a WebSocket. */

import { afterEach, expect, it } from 'vitest';
import { arrive, openForEachTest } from '../support/frontedService.ts';
import { rest } from '../support/gateway.ts';
import { closeSockets, connectSocket, openSocket } from '../support/sockets.ts';

const alice = 'token-of-alice';
const open = openForEachTest();
afterEach(closeSockets);

it('stands for its account, and ends its sockets once the upstream refuses it, but not those of another', async () => {
  const { gateway, service } = await open({ settings: { UPSTREAM_TOKEN_TTL: '1' } });
  await arrive(gateway, alice);
  const [socket, other] = [
    await connectSocket(gateway, alice),
    await connectSocket(gateway, 'second-of-alice'),
  ];
  const query = '{ viewer { username } }';
  const payload = { data: { viewer: { username: 'alice' } } };
  socket.send({ id: 'q', type: 'subscribe', payload: { query } });
  expect([await socket.next(), await socket.next()]).toEqual([
    { id: 'q', type: 'next', payload },
    { id: 'q', type: 'complete' },
  ]);
  socket.send({ id: 's', type: 'subscribe', payload: { query: `subscription ${query}` } });
  expect(await socket.next()).toEqual({ id: 's', type: 'next', payload });

  service.revoke(alice);
  // Which the gateway is told of here; it asks by itself once in a while.
  expect((await rest(gateway, alice, '/nowhere')).status).toBe(401);
  expect(await socket.closed).toEqual({
    code: 4403,
    reason: 'Unauthorized: the token is unknown or revoked',
  });
  other.send({ id: 'q', type: 'subscribe', payload: { query } });
  expect(await other.next()).toEqual({ id: 'q', type: 'next', payload });
});

it('that the upstream does not know is closed with 4403, and so is one that it cannot be asked about with 1013', async () => {
  const { gateway, service } = await open();
  const connect = async (token: string) => {
    const socket = await openSocket(gateway);
    socket.send({ type: 'connection_init', payload: { Authorization: `Bearer ${token}` } });
    return (await socket.closed).code;
  };
  expect(await connect('nobody')).toBe(4403);
  await service.stop();
  expect(await connect('nobody-else')).toBe(1013);
});
