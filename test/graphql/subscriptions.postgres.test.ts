/**
 * Subscriptions by HTTP: the current result, then each change, while the client is connected and its token valid. By event streams, with
 * the client of their protocol, and by Apollo's multipart protocol.
 */

import { getEventListeners } from 'node:events';
import { tmpdir } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from 'graphql-sse';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createToken, revokeToken } from '../../src/auth/tokens.ts';
import { openDatabase } from '../../src/database/database.ts';
import { timeouts } from '../../src/http/connections.ts';
import { type Account, createAccount } from '../support/accounts.ts';
import { type Events, type SubscribeOptions, subscribe } from '../support/events.ts';
import { openTestGateway, postJson, type TestGateway, withClient } from '../support/gateway.ts';
import { openRaw } from '../support/rawHttp.ts';
import { gatewayBeside, gatewayWith } from '../support/setUp.ts';
import { openTcpProxy } from '../support/tcpProxy.ts';

let alice: Account;
let names = 0;
const open: Events[] = [];

const { gateway, database } = await gatewayWith([]);
beforeEach(async () => {
  names++;
  alice = await createAccount(database.client, `alice-${names}`);
});
afterEach(() => {
  for (const events of open.splice(0)) events.leave();
});

async function follow(
  query: string,
  {
    token = alice.token,
    at = gateway,
    ...options
  }: SubscribeOptions & { token?: string; at?: TestGateway } = {},
): Promise<Events> {
  const events = await subscribe(at, token, query, options);
  open.push(events);
  return events;
}

const activeName = 'subscription { activeDttTemplate { name } }';

const activate = (account: Account, index: 0 | 1 | 2) =>
  postJson(gateway, account.token, `/dtt/templates/${account.dttTemplates[index]}`, { isActive: true });

it('a subscriber gets a change that was made while the gateway heard of none', async () => {
  const proxy = await openTcpProxy(database);
  const { connectionString = '' } = database.pool.options;
  const urls = { DATABASE_URL: connectionString, DATABASE_DIRECT_URL: proxy.url, DATA_DIR: tmpdir() };
  const at = await openTestGateway(withClient(await openDatabase(urls)));
  const events = await follow(activeName, { at });
  const before = await events.next();
  await proxy.refuse();
  await expect.poll(() => at.feed.listening).toBe(false);
  // The loss itself has the subscription run again.
  await sleep(300);
  await activate(alice, 1);
  await proxy.accept();
  expect(await events.next()).not.toEqual(before);
  events.leave();
  await at.close();
  await proxy.close();
});

describe('authentication of a subscriber', () => {
  it('ends the stream when its token is revoked, and no stream of another token', async () => {
    const { id, token } = await createToken(database.pool, alice.username, 'short-lived');
    const revoked = await follow(activeName, { token });
    const other = await follow(activeName);
    await Promise.all([revoked.next(), other.next()]);
    await revokeToken(database.pool, id);
    expect(await revoked.nextResult()).toEqual({
      errors: [
        {
          message: 'Unauthorized: the token is unknown or revoked',
          extensions: { code: 'UNAUTHENTICATED' },
        },
      ],
    });
    expect(await revoked.rest()).toEqual(['complete']);
    await activate(alice, 0);
    expect(await other.next()).toEqual({ activeDttTemplate: { name: `Program 0 of ${alice.username}` } });
  });

  it('leaves no stream open when its token is revoked just as the stream begins', async () => {
    for (let round = 0; round < 5; round++) {
      const { id, token } = await createToken(database.pool, alice.username, `round ${round}`);
      const [events] = await Promise.all([
        subscribe(gateway, token, activeName),
        new Promise((settle) => setTimeout(settle, round)).then(() => revokeToken(database.pool, id)),
      ]);
      // The stream is rejected or ended, but never left open.
      if (events.response.status === 401) await events.response.text();
      else expect((await events.rest()).at(-1)).toBe('complete');
    }
  });
});

it('a gateway whose client has disconnected has no listener left that waits for the gateway to close', async () => {
  const closing = new AbortController();
  const other = await gatewayBeside(database, { closing: closing.signal });
  const waiting = () => getEventListeners(closing.signal, 'abort').length;
  const before = waiting();
  const events = await follow(activeName, { at: other });
  await events.next();
  expect(waiting()).toBeGreaterThan(before);
  events.leave();
  await expect.poll(waiting).toBe(before);
});

it('disconnects a client that stops reading', async () => {
  const other = await gatewayBeside(database, { timeouts: { ...timeouts, silence: 500 } });
  const [id] = alice.dttTemplates;
  await database.client.user.update({ where: { id: alice.userId }, data: { activeTemplateId: id } });
  const { socket } = await openRaw(other.url);
  socket.write(
    `GET /graphql?query=subscription{activeDttTemplate{name,message}} HTTP/1.1\r\nHost: x\r\n` +
      `Authorization: Bearer ${alice.token}\r\nAccept: text/event-stream\r\n\r\n`,
  );
  socket.pause();
  await expect.poll(() => other.connections()).toBe(1);
  for (let step = 1; step <= 60 && (await other.connections()) > 0; step++) {
    const data = { name: `Step ${step}.`, message: 'x'.repeat(500_000) };
    await database.client.dttTemplate.update({ where: { id }, data });
  }
  await expect.poll(() => other.connections()).toBe(0);
  socket.destroy();
});

it("graphql-sse's client runs queries, mutations and subscriptions", async () => {
  const dave = await createAccount(gateway.database.client, 'dave');
  const client = createClient({
    url: `${gateway.url}/graphql`,
    headers: { Authorization: `Bearer ${dave.token}` },
  });
  const results = client.iterate({ query: '{ viewer { username } }' });
  expect((await results.next()).value).toEqual({ data: { viewer: { username: 'dave' } } });
  const changes = client.iterate({ query: activeName });
  expect((await changes.next()).value).toEqual({ data: { activeDttTemplate: null } });
  const [databaseId] = dave.dttTemplates;
  const query = `mutation { activateTemplate(template: { databaseId: ${databaseId} }) { scheduleTypeChanged } }`;
  expect((await client.iterate({ query }).next()).value).toMatchObject({ data: {} });
  const name = 'Program 0 of dave';
  expect((await changes.next()).value).toEqual({ data: { activeDttTemplate: { name } } });
  await changes.return?.();
  client.dispose();
});

it('a stream of a gateway that closes does not look complete', async () => {
  const closing = new AbortController();
  const at = await gatewayBeside(database, { closing: closing.signal });
  const accepting = ['text/event-stream', 'multipart/mixed;subscriptionSpec=1.0'];
  const [stream, parts] = await Promise.all(accepting.map((accept) => follow(activeName, { at, accept })));
  closing.abort();
  await expect(stream?.response.text()).rejects.toThrow('terminated');
  expect(await parts?.response.text()).toMatch(
    /"payload":null,"errors":.*"SERVICE_UNAVAILABLE".*--graphql--\r\n$/s,
  );
});
