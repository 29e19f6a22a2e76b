/** WebSockets by the protocol graphql-transport-ws, message by message. */

import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { createToken, revokeToken } from '../../../src/auth/tokens.ts';
import { type Account, createAccount } from '../../support/accounts.ts';
import { openTestGateway, postJson, type TestGateway } from '../../support/gateway.ts';
import { closeSockets, connectSocket, openSocket } from '../../support/sockets.ts';

let gateway: TestGateway;
let alice: Account;

beforeAll(async () => {
  gateway = await openTestGateway(undefined, { socketTimeouts: { init: 300, goodbye: 200 } });
  alice = await createAccount(gateway.database.client, 'alice');
});
afterEach(closeSockets);
afterAll(() => gateway?.close());

const connect = () => connectSocket(gateway, alice.token);
const subscribe = (id: string, query: string, more = {}) => ({ id, type: 'subscribe', payload: { query, ...more } });
const activeName = 'subscription { activeDttTemplate { name } }';

describe('an operation', () => {
  it('that is a query gets its result, and is complete', async () => {
    const socket = await connect();
    socket.send(subscribe('a', 'query ($id: Int!) { dttDevice(databaseId: $id) { bubbleId } }', { variables: { id: alice.dttDevices[0] } }));
    expect(await socket.next()).toEqual({ id: 'a', type: 'next', payload: { data: { dttDevice: { bubbleId: 'alice-dtt-0' } } } });
    expect(await socket.next()).toEqual({ id: 'a', type: 'complete' });
  });

  it('that is a subscription gets how things are, then every change, until its client completes it', async () => {
    const socket = await connect();
    socket.send(subscribe('s', activeName));
    expect(await socket.next()).toEqual({ id: 's', type: 'next', payload: { data: { activeDttTemplate: null } } });
    await postJson(gateway, alice.token, `/dtt/templates/${alice.dttTemplates[0]}`, { isActive: true });
    expect(await socket.next()).toEqual({
      id: 's',
      type: 'next',
      payload: { data: { activeDttTemplate: { name: 'Program 0 of alice' } } },
    });
    socket.send({ id: 's', type: 'complete' });
  });

  it('that is wrong gets an error, and no more', async () => {
    const socket = await connect();
    socket.send(subscribe('e', '{ nothing }'));
    expect(await socket.next()).toEqual({
      id: 'e',
      type: 'error',
      payload: [expect.objectContaining({ message: 'Cannot query field "nothing" on type "Query".', extensions: { code: 'BAD_USER_INPUT' } })],
    });
  });
});

describe('a token', () => {
  it('that is revoked closes its sockets with 4403, and no others', async () => {
    const { token, id } = await createToken(gateway.database.client, alice.userId, 'to revoke');
    const socket = await connectSocket(gateway, token);
    const other = await connect();
    socket.send(subscribe('s', activeName));
    await socket.next();
    await revokeToken(gateway.database.client, id);
    expect(await socket.closed).toEqual({ code: 4403, reason: 'Unauthorized: the token is unknown or revoked' });
    expect(socket.unread).toEqual([]);
    expect(other.socket.readyState).toBe(other.socket.OPEN);
  });
});
