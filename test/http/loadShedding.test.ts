/** What stands before the database: who waits, who is turned away while too many wait, and how long anybody may take. */

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

/** Has all statements of a kind wait: at a lock, or on the embedded engine for their turn. */
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
 * The status of the response by a connection of its own. By one that has just asked the database, a machine with much to do
 * may have it turned away with whatever comes.
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

describe('while as many requests wait as may', () => {
  const maxWaiting = 3;
  let gateway: TestGateway;
  beforeAll(async () => {
    const settings = { MAX_WAITING: String(maxWaiting) };
    gateway = await openTestGateway(await openBeside(database), { settings });
  });
  afterAll(() => gateway?.close());

  it('a request that needs the database gets a 503 at once, what is kept is served, and afterwards all is well', async () => {
    const cachedQuery = '{ viewer { username } }';
    expect((await rest(gateway, alice.token, '/users/me')).status).toBe(200);
    // Twice, since it is kept the second time.
    for (let time = 0; time < 2; time++) await graphqlOnce(gateway, alice.token, cachedQuery);
    const before = await rest(gateway, alice.token, '/dtt/templates/active');

    const { pool } = gateway.database;
    // The embedded engine lets nobody connect meanwhile.
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
    // Until it is no burst any more.
    await sleep(150);

    const [template] = alice.dttTemplates;
    const began = performance.now();
    const refused = [
      postJson(gateway, alice.token, `/dtt/templates/${template}`, { isActive: true }),
      rest(gateway, alice.token, '/dtt/sessions?limit=1'),
    ];
    await Promise.all(refused);
    // One whose token has to be looked up has a turn as well, for which the newest of hers makes room.
    running.push(rest(gateway, bob.token, '/users/me'), ...waiting.slice(0, -1));
    for (const response of await Promise.all([...refused, ...waiting.slice(-1)])) {
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

describe('while there is too much to do', () => {
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

  it('a request is turned away before anything is made of it, and is counted', async () => {
    const counted = { begin: 0, turnedAway: 0 };
    const metrics = {
      watchLoad() {},
      begin: () => void counted.begin++,
      end() {},
      turnedAway: () => void counted.turnedAway++,
      print: async () => '',
    };
    const gateway = await openTestGateway(await openBeside(database), {
      settings: { MAX_WAITING: '1' },
      logLevel: 'warn',
      metrics,
    });
    const { pool } = gateway.database;
    // Each request that anything is made of keeps the process busy for too long.
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
      // One after the other by the same connection.
      for (let count = 1; count <= 10; count++) {
        connection.socket.write(
          `GET /api/v1/dtt/sessions?offset=${asked++} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${alice.token}\r\n\r\n`,
        );
        await expect.poll(() => connection.received().split('Too busy').length).toBe(count + 1);
      }
      // What comes behind such a request begins when that has its response, also where Node lets go of the connection.
      other.socket.write(
        `GET /api/v1/dtt/sessions?offset=${asked++} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${alice.token}\r\n\r\n`,
      );
      await expect.poll(() => other.received()).toContain('Too busy');
      const before = counted.turnedAway;
      other.socket.write(
        `GET /api/v1/dtt/sessions?offset=${asked++} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${alice.token}\r\n\r\n${upgrade}`,
      );
      await expect.poll(() => other.received()).toContain('101 Switching Protocols');
      expect(other.received().split('Too busy')).toHaveLength(3);
      expect(counted.turnedAway).toBe(before + 1);
    } finally {
      requestSpans.start.unsubscribe(keepBusy);
    }
    const responses = parseResponses(connection.received());
    expect(responses.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 503));
    connection.socket.destroy();
    other.socket.destroy();
    await release();
    for (const response of running) expect((await response).status).toBe(200);
    // All but the first, or but the first two.
    expect(counted.turnedAway).toBeGreaterThanOrEqual(8);
    expect(counted.begin + counted.turnedAway).toBe(1 + running.length + 13);
    await gateway.close();
    const lines = gateway.log.map((line) => JSON.parse(line));
    const [summary, ...more] = lines.filter(({ msg }) => msg === 'turned requests away');
    expect(summary).toMatchObject({ level: 40, count: counted.turnedAway });
    expect(more).toEqual([]);
    // The others have theirs, as ever.
    const status503 = lines.filter(({ status }) => status === 503);
    expect(status503).toHaveLength(12 - counted.turnedAway);
  });
});

describe('a statement', () => {
  needsEngine('postgres', 'the embedded engine has no timers, and nobody else’s locks');

  const bounds = { connections: 2, statement: 300 };
  const open = async (url = database.pool.options.connectionString) =>
    withClient(await openDatabase({ DATABASE_URL: url, DATA_DIR: tmpdir() }, bounds));

  it('that waits for a lock ends in time, on the server as well', async () => {
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

  it('has its turn before all the statements of a request that came first have ended', async () => {
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

  it('that nobody answers ends in time', async () => {
    const line = await openTcpProxy(database);
    const gateway = await openTestGateway(await open(line.url));
    expect((await rest(gateway, alice.token, '/users/me')).status).toBe(200);
    line.hold();
    const { response, took } = await timed(rest(gateway, alice.token, '/dtt/sessions?limit=2'));
    expect(response.status).toBe(500);
    expect(took).toBeLessThan(4_000);
    line.release();
    await expect
      .poll(async () => (await rest(gateway, alice.token, '/dtt/sessions?limit=3')).status)
      .toBe(200);
    await gateway.close();
    await line.close();
  });

  it('of a command may take what it takes, and that of a gateway no connection more than it has', async () => {
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

  /** A load shedder, and what the database has room for, which has so many run at once. */
  function open(maxWaiting = 2, limit = 1) {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    vi.advanceTimersByTime(1_000);
    const state = { room: 0, begun: [] as Exchange[], ended: () => {} };
    /** The viewers whose statements wait. */
    const statements = new Set<number | string>();
    const { shed, isOverload, figures } = createLoadShedder({
      maxWaiting,
      statements: {
        get users() {
          return statements.size;
        },
        isWaiting: (key) => statements.has(key),
        serve() {},
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
    /** What became of each request, by its name. */
    const outcomes: string[] = [];
    const ask = (name: string, size?: number) => {
      const exchange = openAlone();
      // Requests of one viewer begin with the same letter.
      Promise.resolve(shed(exchange, () => name.charAt(0), size)).then((isTurnedAway) => {
        outcomes.push(`${name} ${isTurnedAway ? '503' : 'ok'}`);
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
    return { state, shed, isOverload, figures, statements, ask, later, makeRoom };
  }

  /** As much of a request and its response as is looked at. */
  function openAlone(): Exchange {
    const outgoing = new EventEmitter() as ServerResponse;
    return openExchange({ headers: {}, url: '/' } as IncomingMessage, outgoing, nobodyListens);
  }

  it('lets a request through at once while there is room and nobody waits', () => {
    const { state, shed, figures } = open(2, 7);
    state.room = 1;
    const exchange = openAlone();
    const noOne = () => expect.unreachable();
    expect(shed(exchange, noOne)).toBe(false);
    state.room = 0;
    // It does not think again, nor counts its time anew.
    expect(shed(exchange, noOne)).toBe(false);
    state.room = 1;
    expect(shed(exchange, noOne, 2)).toBe(false);
    expect(state.begun).toEqual([exchange]);
    expect(figures).toMatchObject({ limit: 7, waiting: 0, turnedAway: 0 });
  });

  it('has the others wait, and serves everybody in turn', async () => {
    const { ask, later, makeRoom, figures } = open(4);
    for (const name of ['a1', 'a2', 'a3', 'b1']) ask(name);
    expect(await later(5)).toEqual([]);
    expect(figures.waiting).toBe(4);
    makeRoom(2);
    expect(await later(0)).toEqual(['a1 ok', 'b1 ok']);
    makeRoom(1);
    // Also where nothing says that there is room.
    expect(await later(0)).toEqual(['a2 ok']);
    expect(await later(10)).toEqual(['a3 ok']);
    expect(figures).toMatchObject({ waiting: 0, turnedAway: 0 });
  });

  it('lets nobody through whose statements wait, and others until so many users have some', async () => {
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

  it('lets nobody pass those who wait', async () => {
    const { state, ask, later } = open(4);
    ask('a1');
    state.room = 1;
    ask('b1');
    expect(await later(0)).toEqual([]);
    expect(await later(5)).toEqual(['a1 ok']);
    expect(await later(5)).toEqual(['b1 ok']);
  });

  it('lets more wait for a moment than for long', async () => {
    const { ask, later, makeRoom, figures } = open(2);
    for (let number = 1; number <= 6; number++) ask(`a${number}`);
    expect(await later(0)).toEqual([]);
    ask('a7');
    // Who asks is told first, and then the newest of those for whom there is no place either, now that there is too much.
    expect((await later(0)).sort()).toEqual(['a3 503', 'a4 503', 'a5 503', 'a6 503', 'a7 503']);
    expect(figures).toMatchObject({ waiting: 2, turnedAway: 5 });
    // It is known for a while, and then it may take longer again.
    ask('a8');
    expect(await later(0)).toEqual(['a8 503']);
    makeRoom(1);
    expect(await later(1_000)).toEqual(['a1 ok', 'a2 ok']);
    makeRoom(0);
    for (const name of ['a1', 'a2']) ask(name);
    expect(await later(150)).toEqual([]);
  });

  it('lets as many wait as may, whoever they are, as long as it is their turn within a second', async () => {
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
    // That took too long, as one slow statement may make it.
    ask('a33');
    expect(await later(305)).toEqual([]);
    makeRoom(1);
    expect(await later(0)).toEqual(['a3 ok']);
    state.room = 0;
    // It goes on to: who comes now is turned away, and so are all others but the next.
    ask('a34');
    const turnedAway = await later(0);
    expect(turnedAway).toHaveLength(28);
    expect(turnedAway).not.toContain('a4 503');
    makeRoom(1);
    expect(await later(0)).toEqual(['a4 ok']);
  });

  it('turns nobody away for the time that they wait', async () => {
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
    ['out of the queue', 0],
  ])('keeps as many waiting under overload as are served in 15 ms, %s', async (_, room) => {
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
    expect(figures).toMatchObject({ waiting: 15, turnedAway: 136 });
  });

  it.each([
    ['stays overloaded when a request waits again soon after the queue was empty', 150, ['b3 503']],
    ['is not overloaded any more when the queue has been empty for a while', 201, []],
  ])('%s', async (_, empty, turnedAway) => {
    const { ask, later, makeRoom } = open(2);
    for (let number = 1; number <= 7; number++) ask(`a${number}`);
    await later(0);
    makeRoom(2);
    expect(await later(empty)).toEqual(['a1 ok', 'a2 ok']);
    makeRoom(0);
    ask('b1');
    expect(await later(60)).toEqual([]);
    for (const name of ['b2', 'b3']) ask(name);
    expect(await later(0)).toEqual(turnedAway);
  });

  it('keeps as many waiting under overload as three quarters of what runs at once', async () => {
    const { ask, later, figures } = open(20, 12);
    for (let number = 1; number <= 61; number++) ask(`a${number}`);
    await later(0);
    expect(figures).toMatchObject({ waiting: 9, turnedAway: 52 });
  });

  it('has a burst that is too long make room as under overload for another client', async () => {
    const { ask, later } = open(2);
    for (let number = 1; number <= 6; number++) ask(`a${number}`);
    ask('b1');
    expect((await later(0)).sort()).toEqual(['a2 503', 'a3 503', 'a4 503', 'a5 503', 'a6 503']);
  });

  it('has whoever sends most make room for the others', async () => {
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

  it('turns away who asks last where nobody has more', async () => {
    const { shed, state, ask, later, makeRoom } = open(3, 6);
    for (const name of ['a1', 'b1', 'c1']) ask(name);
    await later(150);
    // At once, so that it takes next to nothing; nor does its time count.
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
    expect(figures).toMatchObject({ waiting: 0, turnedAway: 0 });
  });

  it('counts a batch as what it has, and lets it wait alone however many that are', async () => {
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
    // One that was let through as a request alone, to look up its token, has to be as a batch.
    const exchange = openAlone();
    state.room = 1;
    expect(shed(exchange, () => 'f', 1)).toBe(false);
    state.room = 0;
    expect(shed(exchange, () => 'f', 3)).toBeInstanceOf(Promise);
    expect(state.begun.filter((each) => each === exchange)).toHaveLength(1);
  });
});
