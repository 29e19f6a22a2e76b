/** WebSockets with tokens of the upstream. */

import { afterEach, expect, it } from 'vitest';
import { rest } from '../../../support/gateway.ts';
import { closeSockets, connectSocket, openSocket } from '../../../support/sockets.ts';
import { activate, arrive, openForEachTest } from '../support/frontedService.ts';
import { failure } from '../support/standIn/reads.ts';

const alice = 'token-of-alice';
const open = openForEachTest();
afterEach(closeSockets);

it('a WebSocket serves the account of its token, and closes once the upstream rejects it, while others stay open', async () => {
  const { gateway, service } = await open({ tokenMaxAge: 1_000 });
  await arrive(gateway, alice);
  const [socket, other] = [
    await connectSocket(gateway, alice),
    await connectSocket(gateway, 'second-of-alice'),
  ];
  const query = '{ viewer { username } }';
  const payload = { data: { viewer: { username: 'alice' } } };
  socket.send({ id: 's', type: 'subscribe', payload: { query: `subscription ${query}` } });
  expect(await socket.next()).toEqual({ id: 's', type: 'next', payload });

  service.revoke(alice);
  // The other token is not used for it.
  expect((await activate(gateway, alice, 2)).body).toHaveProperty('errors.0.extensions.code', 'BAD_GATEWAY');
  // By this response the gateway learns of it at once. By itself it checks the token at intervals.
  expect((await rest(gateway, alice, '/nowhere')).status).toBe(401);
  expect(await socket.closed).toEqual({
    code: 4403,
    reason: 'Unauthorized: the token is unknown or revoked',
  });
  other.send({ id: 'q', type: 'subscribe', payload: { query } });
  expect(await other.next()).toEqual({ id: 'q', type: 'next', payload });
});

it('a WebSocket closes with 4403 if its token is unknown upstream, and with 1013 if the upstream is unavailable', async () => {
  const { gateway, service } = await open();
  const connect = async (token: string) => {
    const socket = await openSocket(gateway);
    socket.send({ type: 'connection_init', payload: { Authorization: `Bearer ${token}` } });
    return (await socket.closed).code;
  };
  expect(await connect('nobody')).toBe(4403);
  service.misbehave({ instead: () => failure(403, 'Forbidden') });
  expect(await connect('forbidden')).toBe(4403);
  await service.stop();
  expect(await connect('nobody-else')).toBe(1013);
  const { status, headers } = await rest(gateway, 'nobody-at-all', '/dtt');
  expect([status, headers.get('Retry-After')]).toEqual([503, '5']);
});
