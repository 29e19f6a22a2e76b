/** The load shedder before the database: which requests wait, which are rejected under overload, and how long a statement may take. */

import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { requestSpans } from '../../src/channels.ts';
import { openDatabase } from '../../src/database/database.ts';

import { type Exchange, openExchange } from '../../src/http/exchange.ts';
import { createLoadShedder } from '../../src/http/loadShedding.ts';
import { type Account, createAccount } from '../support/accounts.ts';
import { nobodyListens } from '../support/exchanges.ts';
import {
  graphqlOnce,
  needsEngine,
  openBeside,
  openTestDatabase,
  openTestGateway,
  postJson,
  rest,
  type TestDatabase,
  type TestGateway,
  withClient,
} from '../support/gateway.ts';
import { openRaw, parseResponses } from '../support/rawHttp.ts';
import { openTcpProxy } from '../support/tcpProxy.ts';

let database: TestDatabase;
let alice: Account;
let bob: Account;
let holder: pg.Client | undefined;

beforeAll(async () => {
  database = await openTestDatabase();
  alice = await createAccount(database.client, 'alice');
  bob = await createAccount(database.client, 'bob');
});
afterEach(() => release());
afterAll(() => database?.close());

/** Has all statements of a kind wait: for a lock, or on the embedded engine for their turn. */
async function hold(sql: string): Promise<void> {
  holder = new pg.Client(database.pool.options);
  await holder.connect();
  await holder.query(`BEGIN; ${sql}`);
}
async function release(): Promise<void> {
  await holder?.end();
  holder = undefined;
}

/**
 * The status of the response on a connection of its own. On one whose last request waited for the database, a busy machine may
 * shed any request early.
 */
async function statusOnceConnected(gateway: TestGateway, line: string, token: string, body = '') {
  const connection = await openRaw(gateway.url);
  const head = [
    `${line} HTTP/1.1`,
    'Host: a',
    'Connection: close',
    `Authorization: Bearer ${token}`,
    'Accept: */*',
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
  ];
  connection.socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
  const [response] = parseResponses(await connection.ended());
  return response?.status;
}

async function timed<T>(asking: Promise<T>): Promise<{ response: T; took: number }> {
  const began = performance.now();
  return { response: await asking, took: performance.now() - began };
}

describe('while as many requests wait as MAX_WAITING allows', () => {
  const maxWaiting = 3;
  let gateway: TestGateway;
  beforeAll(async () => {
    const settings = { MAX_WAITING: String(maxWaiting) };
    gateway = await openTestGateway(await openBeside(database), { settings });
  });
  afterAll(() => gateway?.close());

  it('a request that needs the database gets a 503 at once, cached responses are served, and all waiting requests are served in the end', async () => {
    const cachedQuery = '{ viewer { username } }';
    expect((await rest(gateway, alice.token, '/users/me')).status).toBe(200);
    // Twice, since a response is cached the second time.
    for (let time = 0; time < 2; time++) await graphqlOnce(gateway, alice.token, cachedQuery);
    const before = await rest(gateway, alice.token, '/dtt/templates/active');

    const { pool } = gateway.database;
    // All connections are opened before, since the embedded engine opens none while a transaction runs.
    await Promise.all(
      Array.from({ length: pool.options.max ?? 0 }, () => pool.query('SELECT pg_sleep(0.01)')),
    );
    await hold('LOCK TABLE "DttSession"');
    let asked = 0;
    const askFor = (count: number) =>
      Array.from({ length: count }, () => rest(gateway, alice.token, `/dtt/sessions?offset=${asked++}`));
    const running = askFor(pool.options.max ?? 0);
    await expect.poll(() => pool.idleCount).toBe(0);
    const waiting = askFor(maxWaiting);
    // Until this no longer counts as a burst.
    await sleep(150);

    const [template] = alice.dttTemplates;
    const began = performance.now();
    const rejected = [
      postJson(gateway, alice.token, `/dtt/templates/${template}`, { isActive: true }),
      rest(gateway, alice.token, '/dtt/sessions?limit=1'),
    ];
    await Promise.all(rejected);
    // A request whose token has to be looked up waits as well, and the newest request of alice is rejected for it.
    running.push(rest(gateway, bob.token, '/users/me'), ...waiting.slice(0, -1));
    for (const response of await Promise.all([...rejected, ...waiting.slice(-1)])) {
      expect(response).toMatchObject({ status: 503, body: { ok: false, error: 'Too busy; try again' } });
      expect(response.headers.get('Retry-After')).toBe('1');
    }
    expect(performance.now() - began).toBeLessThan(1_000);

    expect(await statusOnceConnected(gateway, 'GET /api/v1/users/me', alice.token)).toBe(200);
    const cached = JSON.stringify({ query: cachedQuery, variables: {} });
    expect(await statusOnceConnected(gateway, 'POST /graphql', alice.token, cached)).toBe(200);
    expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);
    expect(pool.waitingCount).toBe(0);

    await release();
    for (const { status } of await Promise.all(running)) expect(status).toBe(200);
    expect((await rest(gateway, bob.token, '/users/me')).status).toBe(200);
    expect((await rest(gateway, alice.token, '/dtt/templates/active')).body).toEqual(before.body);
  });
});

describe('while the event loop is overloaded', () => {
  const upgrade = [
    'GET /graphql HTTP/1.1',
    'Host: a',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Protocol: graphql-transport-ws',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    '\r\n',
  ].join('\r\n');

  it('a request is shed before an exchange is opened for it, and is counted', async () => {
    const counted = { ended: 0, rejected: 0 };
    const metrics = {
      watchLoad() {},
      watchRequests() {},
      end: () => void counted.ended++,
      rejected: () => void counted.rejected++,
      print: async () => '',
    };
    const gateway = await openTestGateway(await openBeside(database), {
      settings: { MAX_WAITING: '1' },
      logLevel: 'warn',
      metrics,
    });
    const { pool } = gateway.database;
    // Each request that an exchange is opened for keeps the event loop busy for too long.
    const keepBusy = () => {
      for (const until = performance.now() + 15; performance.now() < until; );
    };
    expect((await rest(gateway, alice.token, '/users/me')).status).toBe(200);
    await Promise.all(
      Array.from({ length: pool.options.max ?? 0 }, () => pool.query('SELECT pg_sleep(0.01)')),
    );
    await hold('LOCK TABLE "DttSession"');
    let asked = 0;
    const ask = () => rest(gateway, alice.token, `/dtt/sessions?offset=${asked++}`);
    const running = Array.from({ length: (pool.options.max ?? 0) + 1 }, ask);
    await expect.poll(() => pool.idleCount).toBe(0);
    await sleep(150);
    const connection = await openRaw(gateway.url);
    const other = await openRaw(gateway.url);
    requestSpans.start.subscribe(keepBusy);
    try {
      // One after the other on the same connection.
      for (let count = 1; count <= 10; count++) {
        connection.socket.write(
          `GET /api/v1/dtt/sessions?offset=${asked++} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${alice.token}\r\n\r\n`,
        );
        await expect.poll(() => connection.received().split('Too busy').length).toBe(count + 1);
      }
      // The request behind such a one begins after its response, also if Node hands the connection over for an upgrade.
      other.socket.write(
        `GET /api/v1/dtt/sessions?offset=${asked++} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${alice.token}\r\n\r\n`,
      );
      await expect.poll(() => other.received()).toContain('Too busy');
      const before = counted.rejected;
      other.socket.write(
        `GET /api/v1/dtt/sessions?offset=${asked++} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${alice.token}\r\n\r\n${upgrade}`,
      );
      await expect.poll(() => other.received()).toContain('101 Switching Protocols');
      expect(other.received().split('Too busy')).toHaveLength(3);
      expect(counted.rejected).toBe(before + 1);
    } finally {
      requestSpans.start.unsubscribe(keepBusy);
    }
    const responses = parseResponses(connection.received());
    expect(responses.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 503));
    connection.socket.destroy();
    other.socket.destroy();
    await release();
    for (const response of running) expect((await response).status).toBe(200);
    // All but the first one or two.
    expect(counted.rejected).toBeGreaterThanOrEqual(8);
    await expect.poll(() => counted.ended + counted.rejected).toBe(1 + running.length + 13);
    await gateway.close();
    const lines = gateway.log.map((line) => JSON.parse(line));
    const [summary, ...more] = lines.filter(({ msg }) => msg === 'turned requests away');
    expect(summary).toMatchObject({ level: 40, count: counted.rejected });
    expect(more).toEqual([]);
    // The other rejected requests have their own lines.
    const status503 = lines.filter(({ status }) => status === 503);
    expect(status503).toHaveLength(12 - counted.rejected);
  });
});

describe('a statement', () => {
  needsEngine('postgres', 'the embedded engine has no timers, and no locks of other sessions');

  const bounds = { connections: 2, statement: 300 };
  const open = async (url = database.pool.options.connectionString) =>
    withClient(await openDatabase({ DATABASE_URL: url, DATA_DIR: tmpdir() }, bounds));

  it('that waits for a lock is cancelled after the statement timeout, on the server as well', async () => {
    const gateway = await openTestGateway(await open());
    const [template] = alice.dttTemplates;
    const activate = () => postJson(gateway, alice.token, `/dtt/templates/${template}`, { isActive: true });
    await hold(`SELECT FROM "User" WHERE id = ${alice.userId} FOR UPDATE`);
    const { response, took } = await timed(activate());
    expect(response).toMatchObject({ status: 500, body: { ok: false, error: 'Internal server error' } });
    expect(took).toBeLessThan(2_000);
    const { rowCount } = await database.pool.query(
      `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    expect(rowCount).toBe(0);
    expect((await rest(gateway, alice.token, '/dtt/sessions')).status).toBe(200);
    await release();
    expect((await activate()).status).toBe(200);
    await gateway.close();
  });

  it('runs before all the statements of a larger request that came first have ended', async () => {
    const gateway = await openTestGateway(await open());
    for (const { token } of [alice, bob]) expect((await rest(gateway, token, '/users/me')).status).toBe(200);
    await hold('LOCK TABLE "LkbxDevice"');
    const many = Array.from(
      { length: 8 },
      (_, index) => `a${index}: lkbxDevices(first: ${index + 1}) { totalCount }`,
    );
    const ended: string[] = [];
    const asking = graphqlOnce(gateway, alice.token, `{ ${many} }`).then(() => ended.push('alice'));
    await expect.poll(() => gateway.database.pool.idleCount).toBe(0);
    const { status } = await rest(gateway, bob.token, '/dtt/sessions');
    ended.push('bob');
    expect(status).toBe(200);
    await asking;
    expect(ended).toEqual(['bob', 'alice']);
    await release();
    await gateway.close();
  });

  it('that gets no response from the database fails after the timeout', async () => {
    const proxy = await openTcpProxy(database);
    const gateway = await openTestGateway(await open(proxy.url));
    expect((await rest(gateway, alice.token, '/users/me')).status).toBe(200);
    proxy.hold();
    const { response, took } = await timed(rest(gateway, alice.token, '/dtt/sessions?limit=2'));
    expect(response.status).toBe(500);
    expect(took).toBeLessThan(4_000);
    proxy.release();
    await expect
      .poll(async () => (await rest(gateway, alice.token, '/dtt/sessions?limit=3')).status)
      .toBe(200);
    await gateway.close();
    await proxy.close();
  });

  it('of a gateway has the timeout and the number of connections that are set, and that of a command has no timeout', async () => {
    const timeoutOf = async ({ pool }: TestDatabase) =>
      (await pool.query<{ statement_timeout: string }>('SHOW statement_timeout')).rows[0]?.statement_timeout;
    const bounded = await open();
    expect(await timeoutOf(bounded)).toBe('300ms');
    expect(bounded.pool.options.max).toBe(2);
    await bounded.close();
    expect(await timeoutOf(database)).toBe('0');
  });
});

describe('the load shedder', () => {
  afterEach(() => void vi.useRealTimers());

  /** A load shedder, and the state of a fake database whose concurrency limit is `limit`. */
  function open(maxWaiting = 2, limit = 1) {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    vi.advanceTimersByTime(1_000);
    const state = { room: 0, begun: [] as Exchange[], ended: () => {} };
    /** The viewers with waiting statements. */
    const statements = new Set<number | string>();
    /** The statements that wait. */
    const waiting: string[] = [];
    const { shed, isOverload, figures } = createLoadShedder({
      maxWaiting,
      statements: {
        get users() {
          return statements.size;
        },
        get length() {
          return statements.size;
        },
        isWaiting: (key) => statements.has(key),
        serve() {
          const next = state.room > 0 ? waiting.shift() : undefined;
          if (next !== undefined) outcomes.push(`${next} started`);
          return next !== undefined;
        },
      },
      concurrency: {
        limit,
        free: () => state.room,
        onEnded(listener) {
          state.ended = listener;
        },
      },
      begun: (exchange) => state.begun.push(exchange),
    });
    /** The outcome of each request, with its name. */
    const outcomes: string[] = [];
    const ask = (name: string, size?: number) => {
      const exchange = openAlone();
      // Requests of one viewer begin with the same letter.
      Promise.resolve(shed(exchange, () => name.charAt(0), size)).then((isShed) => {
        outcomes.push(`${name} ${isShed ? '503' : 'ok'}`);
      });
      return exchange;
    };
    const later = async (milliseconds: number) => {
      await vi.advanceTimersByTimeAsync(milliseconds);
      return outcomes.splice(0);
    };
    const makeRoom = (room: number) => {
      state.room = room;
      state.ended();
    };
    return { state, shed, isOverload, figures, statements, waiting, ask, later, makeRoom };
  }

  /** An exchange with the parts of a request and its response that the load shedder uses. */
  function openAlone(): Exchange {
    const outgoing = new EventEmitter() as ServerResponse;
    return openExchange({ headers: {}, url: '/' } as IncomingMessage, outgoing, nobodyListens);
  }

  it('lets a request through at once while there is room and none waits', () => {
    const { state, shed, figures } = open(2, 7);
    state.room = 1;
    const exchange = openAlone();
    const noOne = () => expect.unreachable();
    expect(shed(exchange, noOne)).toBe(false);
    state.room = 0;
    // A request that was let through is let through again, and begins only once.
    expect(shed(exchange, noOne)).toBe(false);
    state.room = 1;
    expect(shed(exchange, noOne, 2)).toBe(false);
    expect(state.begun).toEqual([exchange]);
    expect(figures).toMatchObject({ limit: 7, waiting: 0, rejected: 0 });
  });

  it('has the other requests wait, and serves the clients in turn', async () => {
    const { ask, later, makeRoom, figures } = open(4);
    for (const name of ['a1', 'a2', 'a3', 'b1']) ask(name);
    expect(await later(5)).toEqual([]);
    expect(figures.waiting).toBe(4);
    makeRoom(2);
    expect(await later(0)).toEqual(['a1 ok', 'b1 ok']);
    makeRoom(1);
    // Also without an event for the room.
    expect(await later(0)).toEqual(['a2 ok']);
    expect(await later(10)).toEqual(['a3 ok']);
    expect(figures).toMatchObject({ waiting: 0, rejected: 0 });
  });

  it('lets no client through whose statements wait, nor any other while as many users as the concurrency limit have waiting statements', async () => {
    const { statements, ask, later, makeRoom } = open(4, 2);
    for (const name of ['a1', 'b1', 'c1']) ask(name);
    statements.add('a');
    makeRoom(1);
    expect(await later(0)).toEqual(['b1 ok']);
    statements.add('b');
    makeRoom(1);
    expect(await later(10)).toEqual([]);
    statements.delete('a');
    makeRoom(2);
    expect(await later(0)).toEqual(['a1 ok', 'c1 ok']);
  });

  it('has requests and statements take turns, so that neither waits for as long as more of the others come', async () => {
    const { state, statements, waiting, ask, later, makeRoom } = open(4, 2);
    for (const name of ['a1', 'b1', 'c1']) ask(name);
    statements.add('d');
    waiting.push('d’s', 'd’s next');
    const served: string[] = [];
    for (let count = 0; count < 6; count++) {
      makeRoom(1);
      served.push(...(await later(0)));
      state.room = 0;
    }
    expect(served).toEqual(['a1 ok', 'd’s started', 'b1 ok', 'd’s next started', 'c1 ok']);
  });

  it('lets no new request pass those that wait', async () => {
    const { state, ask, later } = open(4);
    ask('a1');
    state.room = 1;
    ask('b1');
    expect(await later(0)).toEqual([]);
    expect(await later(5)).toEqual(['a1 ok']);
    expect(await later(5)).toEqual(['b1 ok']);
  });

  it('allows a longer queue during a burst than later', async () => {
    const { ask, later, makeRoom, figures } = open(2);
    for (let number = 1; number <= 6; number++) ask(`a${number}`);
    expect(await later(0)).toEqual([]);
    ask('a7');
    // The request that overflows the queue is rejected first, and under overload, which begins now, the newest of the others.
    expect((await later(0)).sort()).toEqual(['a3 503', 'a4 503', 'a5 503', 'a6 503', 'a7 503']);
    expect(figures).toMatchObject({ waiting: 2, rejected: 5 });
    // The overload lasts for a while, and then a burst may be longer again.
    ask('a8');
    expect(await later(0)).toEqual(['a8 503']);
    makeRoom(1);
    expect(await later(1_000)).toEqual(['a1 ok', 'a2 ok']);
    makeRoom(0);
    for (const name of ['a1', 'a2']) ask(name);
    expect(await later(150)).toEqual([]);
  });

  it('lets as many requests of one client wait as are allowed, while each is served within a second', async () => {
    const { state, ask, later, makeRoom } = open(100);
    for (let number = 1; number <= 32; number++) ask(`a${number}`);
    expect(await later(990)).toEqual([]);
    makeRoom(1);
    expect(await later(0)).toEqual(['a1 ok']);
    state.room = 0;
    expect(await later(20)).toEqual([]);
    makeRoom(1);
    expect(await later(0)).toEqual(['a2 ok']);
    state.room = 0;
    // That took too long, which may be due to one slow statement.
    ask('a33');
    expect(await later(305)).toEqual([]);
    makeRoom(1);
    expect(await later(0)).toEqual(['a3 ok']);
    state.room = 0;
    // It still takes too long: the request that comes now is rejected, and so are all others but those that are next.
    ask('a34');
    const shed = await later(0);
    expect(shed).toHaveLength(28);
    expect(shed).not.toContain('a4 503');
    makeRoom(1);
    expect(await later(0)).toEqual(['a4 ok']);
  });

  it('does not reject a waiting request because of the time that it waits', async () => {
    const { ask, later, makeRoom } = open(2, 4);
    for (const name of ['a1', 'a2', 'b1', 'a3', 'a4', 'a5', 'a6']) ask(name);
    expect((await later(0)).sort()).toEqual(['a2 503', 'a3 503', 'a4 503', 'a5 503', 'a6 503']);
    expect(await later(100)).toEqual([]);
    makeRoom(1);
    expect(await later(0)).toEqual(['a1 ok']);
    expect(await later(5)).toEqual(['b1 ok']);
  });

  it.each([
    ['at once', 1],
    ['from the queue', 0],
  ])('lets as many requests wait under overload as were let through in 8 ms before, %s', async (_, room) => {
    const { state, ask, later, makeRoom, figures } = open(50);
    // One in each millisecond.
    for (let number = 1; number <= 250; number++) {
      state.room = room;
      ask(`a${number}`);
      makeRoom(1);
      expect(await later(1)).toEqual([`a${number} ok`]);
    }
    makeRoom(0);
    for (let number = 1; number <= 151; number++) ask(`b${number}`);
    await later(0);
    expect(figures).toMatchObject({ waiting: 8, rejected: 143 });
  });

  it.each([
    ['stays overloaded when a request waits again soon after the queue was empty', 150, ['b3 503']],
    ['is not overloaded any more when the queue has been empty for a while', 201, []],
  ])('%s', async (_, empty, shed) => {
    const { ask, later, makeRoom } = open(2);
    for (let number = 1; number <= 7; number++) ask(`a${number}`);
    await later(0);
    makeRoom(2);
    expect(await later(empty)).toEqual(['a1 ok', 'a2 ok']);
    makeRoom(0);
    ask('b1');
    expect(await later(60)).toEqual([]);
    for (const name of ['b2', 'b3']) ask(name);
    expect(await later(0)).toEqual(shed);
  });

  it('lets as many requests wait under overload as three quarters of the concurrency limit', async () => {
    const { ask, later, figures } = open(20, 12);
    for (let number = 1; number <= 61; number++) ask(`a${number}`);
    await later(0);
    expect(figures).toMatchObject({ waiting: 9, rejected: 52 });
  });

  it('shortens the queue as under overload when a request of another client overflows a burst', async () => {
    const { ask, later } = open(2);
    for (let number = 1; number <= 6; number++) ask(`a${number}`);
    ask('b1');
    expect((await later(0)).sort()).toEqual(['a2 503', 'a3 503', 'a4 503', 'a5 503', 'a6 503']);
  });

  it('rejects the newest requests of the client with the most, to make room for other clients', async () => {
    const { ask, later, makeRoom } = open(2, 4);
    for (const name of ['a1', 'a2']) ask(name);
    await later(150);
    ask('b1');
    ask('a3');
    expect((await later(0)).sort()).toEqual(['a2 503', 'a3 503']);
    makeRoom(1);
    expect(await later(0)).toEqual(['a1 ok']);
    expect(await later(5)).toEqual(['b1 ok']);
  });

  it('rejects the request that comes last if no client has more waiting', async () => {
    const { shed, state, ask, later, makeRoom } = open(3, 6);
    for (const name of ['a1', 'b1', 'c1']) ask(name);
    await later(150);
    // Synchronously, which costs next to nothing, and without an effect on its deadline.
    const exchange = openAlone();
    expect(shed(exchange, () => 'd')).toBe(true);
    expect(state.begun).not.toContain(exchange);
    expect(await later(100)).toEqual([]);
    makeRoom(3);
    expect(await later(0)).toEqual(['a1 ok', 'b1 ok', 'c1 ok']);
  });

  it('does nothing for a client that has left', async () => {
    const { ask, later, makeRoom, figures } = open(3);
    const left = ask('a1');
    ask('b1');
    left.response.emit('close');
    makeRoom(1);
    expect(await later(0)).toEqual(['a1 503', 'b1 ok']);
    expect(figures).toMatchObject({ waiting: 0, rejected: 0 });
  });

  it('counts a batch as its number of requests, and lets it wait alone however many those are', async () => {
    const { state, shed, isOverload, ask, later, makeRoom } = open(3);
    ask('a1', 100);
    expect(await later(200)).toEqual([]);
    expect(isOverload()).toBe(false);
    makeRoom(1);
    expect(await later(0)).toEqual(['a1 ok']);
    makeRoom(0);
    for (const name of ['b1', 'c1', 'd1']) ask(name, 1);
    await later(150);
    ask('e1', 3);
    expect(await later(0)).toContain('e1 503');
    makeRoom(9);
    await later(500);
    // A batch that was let through as a single request, to look up its token, has to be let through again as a batch.
    const exchange = openAlone();
    state.room = 1;
    expect(shed(exchange, () => 'f', 1)).toBe(false);
    state.room = 0;
    expect(shed(exchange, () => 'f', 3)).toBeInstanceOf(Promise);
    expect(state.begun.filter((each) => each === exchange)).toHaveLength(1);
  });
});
