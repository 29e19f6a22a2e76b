/**
 * Coherence: random reads and writes, many in flight, through both APIs of several gateways and directly in the database. No
 * read may return a state that is older than what its gateway knew when the read began.
 *
 * What a gateway knows is defined in `coherence/writes.ts`, where rows count their own changes, and in `coherence/floor.ts`.
 */

import { tmpdir } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { createToken, type IssuedToken, revokeToken } from '../../src/auth/tokens.ts';
import { openDatabase } from '../../src/database/database.ts';
import { listenToServer } from '../../src/database/feed/notify.ts';
import { type Account, createAccount, importTemplate } from '../support/accounts.ts';
import {
  needsEngine,
  openBeside,
  openTestDatabase,
  openTestGateway,
  type TestDatabase,
  type TestGateway,
  withClient,
} from '../support/gateway.ts';
import { type PgBouncer, pgbouncerVersion, startPgBouncer } from '../support/pgbouncer.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { openTcpProxy, type TcpProxy } from '../support/tcpProxy.ts';
import { type Counts, Floor, findStale, type Seen } from './floor.ts';
import { announceBy, endReaders, lag, type Way } from './log.ts';
import { held, minutes, runPrograms, type Step, seed, stepsOf, where } from './programs.ts';
import { ask, favourites, type Read, reads, rejected } from './reads.ts';
import { activateAt, at, changeDirectly, hasCaughtUp, shownTo, type Watched, watch } from './watched.ts';
import { preparation, write } from './writes.ts';

const isServer = inject('engine').kind === 'postgres';
/** How long, in milliseconds, each test runs programs. */
const timeLimit = minutes > 0 ? (minutes * 60_000) / 4 : 2_500;
const testTimeout = timeLimit + 60_000;
/** The longest time, in milliseconds, after which a gateway with a silent feed serves no response from its cache any more. */
const longestSilence = 4_200;

let server: PostgresServer | undefined;
let database: TestDatabase;
/** The connections of the test itself, which are not slowed down. */
let own: pg.Pool;
let proxy: TcpProxy | undefined;
let pooler: PgBouncer | undefined;
let gateways: Watched[];
let accounts: readonly Account[];

beforeAll(async () => {
  // A server of its own, whose log can be read, and whose commits can be delayed.
  if (isServer) server = await startPostgres({ max_connections: '200', wal_level: 'logical' });
  database = await (server ? openOn(server) : openTestDatabase());
  const [alice, bob] = [
    await createAccount(database.client, 'alice'),
    await createAccount(database.client, 'bob'),
  ];
  accounts = [alice, bob];
  await database.pool.query(preparation);
  await importTemplate(database.client, bob, alice.dttTemplates[0]);
  own = new pg.Pool({ ...database.pool.options, max: 20 });
  // The server may end connections before the pool does.
  own.on('error', () => {});
  slowDown();
  const { connectionString: address = '' } = database.pool.options;
  if (isServer) proxy = await openTcpProxy(database);
  if (isServer && pgbouncerVersion !== undefined) pooler = await startPgBouncer(address, 'transaction');
  const url = proxy?.url;
  const withFeedToCut = await openBeside(database);
  gateways = [
    // The feed of the first one can be cut, and fall silent.
    watchIt(
      await openTestGateway(
        url === undefined
          ? withFeedToCut
          : { ...withFeedToCut, openChangeFeed: () => listenToServer({ connectionString: url }) },
      ),
    ),
    watchIt(await openTestGateway(await openBeside(database))),
    watchIt(await openTestGateway(await openBeside(database))),
  ];
  if (pooler) {
    const pooled = await openDatabase({ DATABASE_URL: pooler.url, DATA_DIR: tmpdir() });
    gateways.push(watchIt(await openTestGateway(withClient(pooled)), false));
    // Its feed bypasses the pooler, so it caches what it reads through it.
    const past = { DATABASE_URL: pooler.url, DATABASE_DIRECT_URL: address, DATA_DIR: tmpdir() };
    gateways.push(watchIt(await openTestGateway(withClient(await openDatabase(past)))));
  }
});
afterAll(async () => {
  await Promise.all((gateways ?? []).map(({ gateway }) => gateway.close()));
  await pooler?.close();
  await proxy?.close();
  await own?.end();
  await database?.close();
  await server?.stop();
});

async function openOn({ url, createDatabase }: PostgresServer): Promise<TestDatabase> {
  await createDatabase('coherence');
  return withClient(await openDatabase({ DATABASE_URL: `${url}/coherence`, DATA_DIR: tmpdir() }));
}

/** Delays some results of the gateways' queries, as a network would, so that more happens in the meantime. */
function slowDown(): void {
  const query = pg.Pool.prototype.query;
  vi.spyOn(pg.Pool.prototype, 'query').mockImplementation(function (this: pg.Pool, ...given: unknown[]) {
    const response = Reflect.apply(query, this, given);
    const delay = this !== own && Math.random() < 0.3 ? Math.random() * 8 : 0;
    return delay === 0 ? response : Promise.resolve(response).then((rows) => sleep(delay, rows));
  });
}

/** All writes that were acknowledged. */
const acknowledged = new Floor();
const watchIt = (gateway: TestGateway, hasFeed = true) => watch(gateway, acknowledged, hasFeed);

/** Tokens that are created and revoked during the test, in addition to the lasting one of each account; the newest last. */
const temporary = new Map<Account, IssuedToken[]>();
/** Ids of tokens whose revocation has begun. */
const revoking = new Set<number>();

async function read(place: number, account: Account, request: Read, temp?: IssuedToken): Promise<Seen> {
  const watched = at(gateways, place);
  const { gateway, floor, hasFeed } = watched;
  const shownBefore = shownTo(watched, account);
  // While the feed of a gateway is down, or has announced a change that cannot be read yet, the gateway reads from the database,
  // which has all that was acknowledged.
  const begun = hasFeed && gateway.feed.listening ? floor.copy() : acknowledged.copy();
  begun.raiseTo(shownBefore);
  const data = await ask(gateway, temp?.token ?? account.token, request);
  const what = `${request.by} ${request.ask} of ${account.username} at gateway ${place % gateways.length}`;
  const seen = { what, userId: account.userId, floor: begun };
  if (data === rejected) {
    if (!temp || !revoking.has(temp.id)) throw new Error(`${what} was rejected with a valid token`);
    return { ...seen, counts: [[`ApiToken ${temp.id}`, 1]] };
  }
  const sight = request.see(data);
  shownBefore.raise(sight.counts);
  return {
    ...seen,
    ...sight,
    counts: [...sight.counts, ...(temp ? [[`ApiToken ${temp.id}`, 0] as const] : [])],
  };
}

/** Creates a token, or revokes the oldest one if there are two. */
async function changeTokens(account: Account, makes: boolean): Promise<Counts> {
  const tokens = temporary.get(account) ?? [];
  temporary.set(account, tokens);
  const valid = tokens.filter(({ id }) => !revoking.has(id));
  if (makes && valid.length < 2) {
    // Several calls may get here at once, and together exceed the limit of tokens.
    const token = await createToken(database.pool, account.username, 'temporary').catch(() => undefined);
    if (token) tokens.push(token);
    return [];
  }
  const [oldest] = valid;
  if (!oldest) return [];
  revoking.add(oldest.id);
  await revokeToken(database.client, oldest.id);
  return [[`ApiToken ${oldest.id}`, 1]];
}

type OwnStep =
  | { readonly kind: 'token'; readonly makes: boolean }
  | { readonly kind: 'cut' }
  | { readonly kind: 'lag'; readonly milliseconds: number }
  | { readonly kind: 'end readers' }
  | { readonly kind: 'switch'; readonly way: Way };

const stepOf = {
  ...stepsOf(isServer),
  token: fc.record({ ...where, kind: fc.constant('token' as const), makes: fc.boolean() }),
  cut: fc.record({ ...where, kind: fc.constant('cut' as const) }),
  lag: fc.record({
    ...where,
    kind: fc.constant('lag' as const),
    milliseconds: fc.constantFrom(5, 20, 50),
  }),
  endReaders: fc.record({ ...where, kind: fc.constant('end readers' as const) }),
  switch: fc.record({
    ...where,
    kind: fc.constant('switch' as const),
    way: fc.constantFrom<Way[]>('notify', 'logical', 'both'),
  }),
};
type Steps = fc.Arbitrary<Step<OwnStep>>;
const step: Steps = fc.oneof(
  { weight: 24, arbitrary: stepOf.read },
  { weight: 4, arbitrary: stepOf.activate },
  { weight: 6, arbitrary: stepOf.write },
  { weight: 3, arbitrary: stepOf.import },
  { weight: 2, arbitrary: stepOf.token },
  // Restoring takes the COPY protocol or files on the server, neither of which the embedded engine has.
  ...(isServer ? [{ weight: 1, arbitrary: stepOf.restore }] : []),
);
/** Templates that their owners change while other accounts import and remove them. */
const sharing: Steps = fc.oneof(
  { weight: 6, arbitrary: stepOf.read.map((next) => ({ ...next, request: favourites[1] ?? 0 })) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(stepOf.write, held, fc.constantFrom('DttTemplate' as const, 'DttTemplateSegment' as const))
      .map(([next, held, table]) => ({ ...next, asReplica: false, held, table })),
  },
  { weight: 2, arbitrary: stepOf.import },
);
const also = (steps: Steps, weight: number, ...others: { weight: number; arbitrary: Steps }[]): Steps =>
  fc.oneof({ weight, arbitrary: steps }, ...others);

async function take(next: Step<OwnStep>, seen: Seen[]): Promise<void> {
  const account = at(accounts, next.account);
  if (next.kind === 'read') {
    const temp = next.isTemporary ? temporary.get(account)?.at(-1) : undefined;
    for (let time = 0; time < next.times; time++)
      seen.push(await read(next.place, account, at(reads, next.request), temp));
  } else if (next.kind === 'activate') {
    const template = at(account.dttTemplates, next.template);
    await activateAt(at(gateways, next.place), account, template, next.endpoint, acknowledged, gateways);
  } else if (next.kind === 'cut') await proxy?.terminate();
  else if (next.kind === 'lag') await lag(own, next.milliseconds);
  else if (next.kind === 'end readers') await endReaders(own);
  else if (next.kind === 'switch') await announceBy(own, next.way);
  else if (next.kind === 'token') acknowledged.raise(await changeTokens(account, next.makes));
  else acknowledged.raise(await changeDirectly(own, accounts, account, next));
}

/** Sends all reads to all gateways, and a few with every temporary token: whether a token is valid does not depend on the read. */
function readAll(): Promise<Seen[]> {
  return Promise.all(
    gateways.flatMap((_, place) =>
      accounts.flatMap((account) => [
        ...reads.map((request) => read(place, account, request)),
        ...(temporary.get(account) ?? [])
          .slice(-3)
          .flatMap((temp) => favourites.map((request) => read(place, account, at(reads, request), temp))),
      ]),
    ),
  );
}

/** Sends all reads to all gateways, which have to show all that was acknowledged by now. */
async function readNewest(): Promise<Seen[]> {
  return (await readAll()).map((one) => ({ ...one, floor: acknowledged.copy() }));
}

async function isListening({ gateway, hasFeed }: Watched): Promise<void> {
  if (hasFeed) await expect.poll(() => gateway.feed.listening, { interval: 5, timeout: 15_000 }).toBe(true);
}

const haveCaughtUp = () => Promise.all(gateways.map((watched) => hasCaughtUp(watched, acknowledged)));

/** @param act runs the program; by default it does nothing else. */
async function check(
  steps: Steps,
  limit = timeLimit,
  act = async (run: () => Promise<void>, _: Seen[]) => run(),
): Promise<void> {
  const end = Date.now() + limit;
  let seen: Seen[] = [];
  await runPrograms(
    steps,
    (next) => take(next, seen),
    () => Date.now() < end,
    async (run) => {
      seen = [];
      // Activations of the program before are in the counts by now.
      for (const { activations } of [acknowledged, ...gateways.map(({ floor }) => floor)])
        activations.length = 0;
      await act(run, seen);
      // A gateway that begins to listen between a commit and its acknowledgement knows of the commit, while this test does not.
      await Promise.all(gateways.map(isListening));
      // Before further announcements, which would hide a missing one.
      await haveCaughtUp();
      seen.push(...(await readAll()));
      // The counts of the activations are not known. A later write, whose count is known, is announced after them.
      for (const account of accounts) acknowledged.raise(await write(own, account, 'User'));
      await haveCaughtUp();
      // And once more, from the cache.
      seen.push(...(await readNewest()), ...(await readNewest()));
      expect(await findStale(own, seen)).toEqual([]);
    },
  );
}

/** Runs programs while the feed of the first gateway is silent. The silence alone takes most of the time limit. */
function checkSilence(): Promise<void> {
  return check(step, timeLimit / 8, async (run, seen) => {
    proxy?.deafen();
    await run();
    await sleep(longestSilence);
    seen.push(...(await readNewest()));
    proxy?.release();
  });
}

/** Has the database announce in another way, and waits until all gateways listen to that. */
async function switchTo(way: 'notify' | 'logical'): Promise<void> {
  await announceBy(own, way);
  const kinds = () =>
    gateways.flatMap(({ hasFeed, gateway }) =>
      hasFeed && gateway.feed.listening ? [gateway.feed.kind] : [],
    );
  const wanted = gateways.filter(({ hasFeed }) => hasFeed).map(() => way);
  await vi.waitFor(() => expect(kinds()).toEqual(wanted), { interval: 5, timeout: 15_000 });
}

const cut = { weight: 1, arbitrary: stepOf.cut };
const late = { weight: 3, arbitrary: stepOf.lag };

describe('no read is older than what its gateway knew', () => {
  it(`with reads and writes at random (seed ${seed})`, () => check(step), testTimeout);

  describe('on a server', () => {
    needsEngine(
      'postgres',
      'the embedded engine has no connection to cut, and nothing else runs during a transaction',
    );

    it.each<[string, () => Promise<void>]>([
      ['while owners change templates in transactions, and others import them', () => check(sharing)],
      ['while the feed of a gateway is cut repeatedly', () => check(also(step, 30, cut))],
      ['while the feed of a gateway is silent for longer than its timeout', checkSilence],
    ])(`%s (seed ${seed})`, (_, run) => run(), testTimeout);
  });

  describe('with announcements by messages in the log', () => {
    needsEngine('postgres', 'the embedded engine has no logical decoding');
    beforeAll(async () => {
      if (!isServer) return;
      await own.query('CREATE PUBLICATION dovetail');
      await switchTo('logical');
    });
    afterAll(async () => {
      if (isServer) await switchTo('notify');
    });

    const ended = { weight: 1, arbitrary: stepOf.endReaders };
    const switched = { weight: 1, arbitrary: stepOf.switch };

    it.each<[string, () => Promise<void>]>([
      [
        'while commits become visible late, and readers of the log are terminated',
        () => check(also(step, 40, late, ended)),
      ],
      [
        'while owners change templates in transactions that become visible late',
        () => check(also(sharing, 40, late)),
      ],
      ['while the feed of a gateway is cut repeatedly', () => check(also(step, 30, late, cut))],
      ['while the feed of a gateway is silent for longer than its timeout', checkSilence],
      [
        'while the database is switched between NOTIFY and messages in the log',
        () => check(also(step, 40, late, switched)),
      ],
    ])(`%s (seed ${seed})`, (_, run) => run(), testTimeout);
  });

  it('although many responses came from the cache', () => {
    // Otherwise the tests above would only have tested PostgreSQL.
    const sum = (counter: keyof TestGateway['responseCache']['counters']) =>
      gateways.reduce((total, { gateway }) => total + gateway.responseCache.counters[counter], 0);
    expect(sum('hits')).toBeGreaterThan(50);
    expect(sum('misses')).toBeGreaterThan(50);
    expect(sum('overtaken')).toBeGreaterThan(0);
  });

  it('behind a pooler in transaction mode, where no response came from the cache', ({ skip }) => {
    skip(!isServer, 'the embedded engine cannot have a pooler');
    skip(pgbouncerVersion === undefined, 'pgbouncer is not installed');
    const { gateway } = at(gateways, 3);
    expect(gateway.feed.listening).toBe(false);
    expect(gateway.responseCache.counters).toMatchObject({ hits: 0, shared: 0 });
    expect(gateway.responseCache.counters.misses).toBeGreaterThan(50);
  });
});
