/** The gate before the database: who is turned away while too many wait, and how long anybody waits. */

import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingMessage, request, type Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/database/database.ts';

import { openExchange } from '../../src/http/exchange.ts';
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
import { openLine } from '../support/line.ts';

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

async function timed<T>(asking: Promise<T>): Promise<{ response: T; took: number }> {
  const began = performance.now();
  return { response: await asking, took: performance.now() - began };
}

describe('while as many statements wait as may', () => {
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

    await hold('LOCK TABLE "DttSession"');
    const { pool } = gateway.database;
    const all = (pool.options.max ?? 0) + maxWaiting;
    const waiting = Array.from({ length: all }, (_, offset) =>
      rest(gateway, alice.token, `/dtt/sessions?offset=${offset}`),
    );
    await expect.poll(() => pool.waitingCount).toBe(maxWaiting);
    // Until it is no burst any more.
    await sleep(150);

    const refused = await timed(rest(gateway, alice.token, '/dtt/sessions?limit=1'));
    expect(refused.response).toMatchObject({
      status: 503,
      body: { ok: false, error: 'Too busy; try again' },
    });
    expect(refused.response.headers.get('Retry-After')).toBe('1');
    expect(refused.took).toBeLessThan(1_000);
    // Whose token has to be looked up, and who wants to write.
    expect((await rest(gateway, bob.token, '/users/me')).status).toBe(503);
    const [, template] = alice.dttTemplates;
    const activation = await postJson(gateway, alice.token, `/dtt/templates/${template}`, { isActive: true });
    expect(activation.status).toBe(503);
    const query = await graphqlOnce(gateway, alice.token, '{ dttSessions { totalCount } }');
    expect(query).toMatchObject({
      status: 503,
      errors: [{ message: 'Too busy; try again', extensions: { code: 'SERVICE_UNAVAILABLE' } }],
    });

    expect((await rest(gateway, alice.token, '/users/me')).status).toBe(200);
    expect((await graphqlOnce(gateway, alice.token, cachedQuery)).status).toBe(200);
    expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);
    expect(pool.waitingCount).toBe(maxWaiting);

    await release();
    for (const { status } of await Promise.all(waiting)) expect(status).toBe(200);
    expect((await rest(gateway, bob.token, '/users/me')).status).toBe(200);
    expect((await rest(gateway, alice.token, '/dtt/templates/active')).body).toEqual(before.body);
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

  it('that nobody answers ends in time', async () => {
    const line = await openLine(database);
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
  const pool = { waitingCount: 0 };
  let log: string[];
  let server: Server;
  let url: string;
  beforeEach(async () => {
    log = [];
    const shed = createLoadShedder(pool, {
      maxWaiting: 2,
      longest: 50,
      onTimeout({ response }) {
        log.push('late');
        response.writeHead(500).end();
      },
    });
    server = createServer((incoming, response) => {
      const exchange = openExchange(incoming, response, nobodyListens);
      if (shed(exchange)) response.writeHead(503).end();
      else if (incoming.url === '/body') incoming.resume().on('end', () => response.end());
      else if (incoming.url !== '/unanswered') response.write('some');
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    // A server that listens on a port has an address of this type.
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });
  const ask = async (path = '/') => (await fetch(`${url}${path}`)).status;

  it('answers a request that nobody has answered in time, and leaves alone one that somebody has', async () => {
    pool.waitingCount = 0;
    expect(await ask('/unanswered')).toBe(500);
    expect(log).toEqual(['late']);
    expect(await ask()).toBe(200);
    await sleep(100);
    expect(log).toHaveLength(1);
  });

  it('says nothing of a request whose client has left', async () => {
    pool.waitingCount = 0;
    server.once('request', (_incoming, response) => response.destroy());
    await expect(ask('/unanswered')).rejects.toThrow();
    await sleep(100);
    expect(log).toEqual([]);
  });

  it('says nothing of a request whose client had left before it was let through', async () => {
    pool.waitingCount = 0;
    const incoming = { headers: {}, url: '/', complete: true } as IncomingMessage;
    const exchange = openExchange(incoming, new ServerResponse(incoming), nobodyListens);
    exchange.response.emit('close');
    const late: unknown[] = [];
    createLoadShedder(pool, { maxWaiting: 2, longest: 10, onTimeout: (each) => late.push(each) })(exchange);
    await sleep(50);
    expect(late).toEqual([]);
  });

  it('does not count the time that a client takes to send its body', async () => {
    pool.waitingCount = 0;
    const sending = request(`${url}/body`, { method: 'POST' });
    const answered = once(sending, 'response');
    sending.write('slowly');
    // Several times as long as an answer may take.
    await sleep(250);
    sending.end();
    const [response] = await answered;
    expect(response.statusCode).toBe(200);
    expect(log).toEqual([]);
  });

  it('that let a request through does not think again, nor counts its time anew', async () => {
    pool.waitingCount = 0;
    const shed = createLoadShedder(pool, { maxWaiting: 2, longest: 50, onTimeout: () => {} });
    // As much of a request and its answer as is looked at.
    const incoming = { headers: {}, url: '/' } as IncomingMessage;
    const outgoing = new EventEmitter() as ServerResponse;
    const exchange = openExchange(incoming, outgoing, nobodyListens);
    expect(shed(exchange)).toBe(false);
    pool.waitingCount = 100;
    expect(shed(exchange)).toBe(false);
    expect(exchange.headers).not.toHaveProperty('Retry-After');
    // That of the exchange, and one of the load shedder's.
    expect(outgoing.listenerCount('close')).toBe(2);
    const other = openExchange(incoming, new EventEmitter() as ServerResponse, nobodyListens);
    expect(shed(other)).toBe(true);
    expect(other.headers['Retry-After']).toBe('1');
    outgoing.emit('close');
  });

  it('lets a batch through where there is room for all that it counts as, or where nobody waits', () => {
    const shed = createLoadShedder(pool, { maxWaiting: 4, longest: 50, onTimeout: () => {} });
    const open = () => {
      const outgoing = new EventEmitter() as ServerResponse;
      return openExchange({ headers: {}, url: '/' } as IncomingMessage, outgoing, nobodyListens);
    };
    const isTurnedAway = (waiting: number, requests: number, exchange = open()) => {
      pool.waitingCount = waiting;
      const turnedAway = shed(exchange, requests);
      exchange.response.emit('close');
      return turnedAway;
    };
    // The line may be three times as long for a moment.
    expect(isTurnedAway(0, 100)).toBe(false);
    expect(isTurnedAway(2, 10)).toBe(false);
    expect(isTurnedAway(3, 10)).toBe(true);
    // One that was let through as a request alone, to look up its token, has to be as a batch.
    const exchange = open();
    expect(isTurnedAway(3, 1, exchange)).toBe(false);
    expect(isTurnedAway(3, 10, exchange)).toBe(true);
    expect(isTurnedAway(2, 10, exchange)).toBe(false);
    expect(isTurnedAway(100, 10, exchange)).toBe(false);
  });

  it('lets more wait for a moment than for long', async () => {
    const statusWhile = (waiting: number) => {
      pool.waitingCount = waiting;
      return ask();
    };
    await statusWhile(0);
    expect([await statusWhile(5), await statusWhile(6)]).toEqual([200, 503]);
    await sleep(150);
    expect([await statusWhile(1), await statusWhile(2)]).toEqual([200, 503]);
    // It was not empty in between.
    expect(await statusWhile(2)).toBe(503);
    expect([await statusWhile(0), await statusWhile(5)]).toEqual([200, 200]);
  });
});
