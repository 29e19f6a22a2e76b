/** Subscriptions over SSE: the current result, then each change, while the client is connected and its token valid. */

import { getEventListeners, once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createToken, revokeToken } from '../../src/auth/tokens.ts';
import { timeouts } from '../../src/http/connections.ts';
import { type Account, createAccount } from '../support/accounts.ts';
import { type Events, type SubscribeOptions, subscribe } from '../support/events.ts';
import {
  openBeside,
  openTestDatabase,
  openTestGateway,
  postJson,
  type TestDatabase,
  type TestGateway,
} from '../support/gateway.ts';

let database: TestDatabase;
let gateway: TestGateway;
let feedListeners: number;
let alice: Account;
let bob: Account;
let names = 0;
const open: Events[] = [];

beforeAll(async () => {
  database = await openTestDatabase();
  gateway = await openTestGateway(countingFeedListeners(database));
  bob = await createAccount(database.client, 'bob');
});
afterAll(() => gateway?.close());
beforeEach(async () => {
  names++;
  alice = await createAccount(database.client, `alice-${names}`);
});
afterEach(() => {
  for (const events of open.splice(0)) events.leave();
});

/** The database, counting in `feedListeners` the listeners of its feed: parts of the gateway, and subscriptions. */
function countingFeedListeners(counted: TestDatabase): TestDatabase {
  return {
    ...counted,
    async openChangeFeed() {
      const feed = await counted.openChangeFeed();
      feedListeners = 0;
      return {
        ...feed,
        get kind() {
          return feed.kind;
        },
        get listening() {
          return feed.listening;
        },
        get reconnects() {
          return feed.reconnects;
        },
        subscribe(listener) {
          feedListeners++;
          const unsubscribe = feed.subscribe(listener);
          let subscribed = true;
          return () => {
            if (subscribed) feedListeners--;
            subscribed = false;
            unsubscribe();
          };
        },
      };
    },
  };
}

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

describe('a subscriber', () => {
  it('gets the current result, then one after every change, by POST and by GET', async () => {
    for (const method of ['POST', 'GET'] as const) {
      await database.client.user.update({ where: { id: alice.userId }, data: { activeTemplateId: null } });
      const events = await follow(activeName, { method });
      expect(events.response.status).toBe(200);
      expect(events.response.headers.get('Content-Type')).toMatch(/^text\/event-stream/);
      expect(events.response.headers.get('Cache-Control')).toMatch(/no-cache|no-store/);
      expect(events.response.headers.get('Content-Encoding')).toBeNull();
      expect(events.response.headers.get('X-Request-Id')).not.toBeNull();
      expect(await events.next()).toEqual({ activeDttTemplate: null });
      await activate(alice, 0);
      const name = (index: number) => ({
        activeDttTemplate: { name: `Program ${index} of ${alice.username}` },
      });
      expect(await events.next()).toEqual(name(0));
      await activate(alice, 1);
      expect(await events.next()).toEqual(name(1));
      events.leave();
    }
  });

  it.each(['text/event-stream', 'multipart/mixed;subscriptionSpec=1.0'])(
    'may request a query as a stream of %s, which ends by itself',
    async (accept) => {
      for (const method of ['POST', 'GET'] as const) {
        const query = '{ activeDttTemplate { name } }';
        const { response } = await subscribe(gateway, alice.token, query, { accept, method });
        expect(response.status).toBe(200);
        expect(response.headers.get('Content-Type')).toContain(accept.split(';')[0]);
        expect(await response.text()).toContain('{"data":{"activeDttTemplate":null}}');
      }
    },
  );
});

describe('authentication of a subscriber', () => {
  it.each([
    ['no token', undefined],
    ['an unknown token', `dvt_${'A'.repeat(43)}`],
  ])('fails with 401 for %s', async (_, token) => {
    for (const method of ['POST', 'GET'] as const) {
      const { response } = await subscribe(gateway, token, activeName, { method });
      expect(response.status).toBe(401);
      expect(await response.text()).toContain('UNAUTHENTICATED');
    }
  });

  it('ends the stream when its token is revoked, and no stream of another token', async () => {
    const { id, token } = await createToken(database.pool, alice.username, 'short-lived');
    const revoked = await follow(activeName, { token });
    const other = await follow(activeName);
    await Promise.all([revoked.next(), other.next()]);
    await revokeToken(database.client, id);
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
        new Promise((settle) => setTimeout(settle, round)).then(() => revokeToken(database.client, id)),
      ]);
      // The stream is rejected or ended, but never left open.
      if (events.response.status === 401) await events.response.text();
      else expect((await events.rest()).at(-1)).toBe('complete');
    }
  });
});

describe('a client that has disconnected', () => {
  it('leaves no listener of the feed', async () => {
    await subscriptionsEnded();
    const warnings: Error[] = [];
    const warn = (warning: Error) => warnings.push(warning);
    process.on('warning', warn);
    const streams = await Promise.all(Array.from({ length: 12 }, () => follow(activeName)));
    await Promise.all(streams.map((events) => events.next()));
    expect(feedListeners).toBe(ownFeedListeners + 12);
    for (const events of streams) events.leave();
    await subscriptionsEnded();
    process.off('warning', warn);
    expect(warnings).toEqual([]);
  });

  it('leaves no listener of the feed when it disconnects before the first result', async () => {
    await subscriptionsEnded();
    for (let round = 0; round < 14; round++) {
      const socket = await sendSubscription(gateway, alice.token, activeName);
      await new Promise((settle) => setTimeout(settle, round % 7));
      socket.resetAndDestroy();
    }
    await subscriptionsEnded();
    expect(gateway.log).toEqual([]);
  });
});

describe('a gateway whose client has disconnected', () => {
  it('has no listener left that waits for the gateway to close', async () => {
    const closing = new AbortController();
    const other = await openTestGateway(await openBeside(database), { closing: closing.signal });
    const waiting = () => getEventListeners(closing.signal, 'abort').length;
    const before = waiting();
    const events = await follow(activeName, { at: other });
    await events.next();
    expect(waiting()).toBeGreaterThan(before);
    events.leave();
    await expect.poll(waiting).toBe(before);
    closing.abort();
    await other.close();
  });
});

/** The listeners of the feed without any subscription: the response cache, the known tokens and the positions. */
const ownFeedListeners = 3;

/** Waits until no listener of a subscription is left. */
const subscriptionsEnded = () => expect.poll(() => feedListeners).toBe(ownFeedListeners);

it('disconnects a client that stops reading', async () => {
  const other = await openTestGateway(await openBeside(database), {
    timeouts: { ...timeouts, silence: 500 },
  });
  const [id] = alice.dttTemplates;
  await database.client.user.update({ where: { id: alice.userId }, data: { activeTemplateId: id } });
  const query = 'subscription { activeDttTemplate { name message } }';
  const socket = await sendSubscription(other, alice.token, query);
  socket.pause();
  await expect.poll(() => other.connections()).toBe(1);
  for (let step = 1; step <= 60 && (await other.connections()) > 0; step++) {
    const data = { name: `Step ${step}.`, message: 'x'.repeat(500_000) };
    await database.client.dttTemplate.update({ where: { id }, data });
  }
  await expect.poll(() => other.connections()).toBe(0);
  socket.destroy();
  await other.close();
});

describe('a user', () => {
  it('may have MAX_SUBSCRIPTIONS subscriptions, and another one when one has ended', async () => {
    const settings = { MAX_SUBSCRIPTIONS: '2' };
    const other = await openTestGateway(await openBeside(database), { settings });
    const [first] = [await follow(activeName, { at: other }), await follow(activeName, { at: other })];
    await first.next();
    const third = await subscribe(other, alice.token, activeName);
    expect(third.response.status).toBe(429);
    expect(third.response.headers.get('Retry-After')).toBe('1');
    expect(await third.response.json()).toEqual({
      errors: [
        {
          message: 'There are 2 subscriptions open; at most 2 are allowed',
          extensions: { code: 'TOO_MANY_REQUESTS' },
        },
      ],
    });
    expect((await subscribe(other, bob.token, activeName)).response.status).toBe(200);
    first.leave();
    await expect
      .poll(async () => (await subscribe(other, alice.token, activeName)).response.status)
      .toBe(200);
    await other.close();
  });
});

describe('a change feed that was disconnected', () => {
  it('delivers to subscribers what has changed in the meantime', async () => {
    const events = await follow(activeName);
    await events.next();
    await database.pool.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND (query LIKE 'LISTEN dovetail%' OR query = 'SELECT 1') AND pid <> pg_backend_pid()`);
    await expect.poll(() => gateway.feed.listening, { interval: 2 }).toBe(false);
    await activate(alice, 0);
    expect(await events.next()).toEqual({ activeDttTemplate: { name: `Program 0 of ${alice.username}` } });
    await expect.poll(() => gateway.feed.listening).toBe(true);
    await activate(alice, 1);
    expect(await events.next()).toEqual({ activeDttTemplate: { name: `Program 1 of ${alice.username}` } });
  });
});

/** Posts a subscription on a socket of its own, so that the test decides when it is read. */
async function sendSubscription({ url }: TestGateway, token: string, query: string): Promise<Socket> {
  const { hostname, port, host } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {});
  await once(socket, 'connect');
  const body = JSON.stringify({ query });
  socket.write(
    `POST /graphql HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\nAccept: text/event-stream\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  return socket;
}
