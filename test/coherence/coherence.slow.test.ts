/**
 * Coherence: random reads and writes, many in flight, through both APIs of several gateways and directly in the database. No
 * read may return a state that is older than what its gateway knew when the read began.
 *
 * What a gateway knows is defined in `coherence/writes.ts`, where rows count their own changes, and in `coherence/floor.ts`.
 * `SEED=…` generates the same programs again, and `FUZZ_MINUTES=…` sets how long the tests run.
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
import { ask, favourites, type Read, reads, rejected } from './reads.ts';
import {
  activateAt,
  at,
  changeDirectly,
  type DirectChange,
  hasCaughtUp,
  shownTo,
  type Watched,
  watch,
} from './watched.ts';
import { type Holding, leaves, levels, preparation, tables, write } from './writes.ts';

const isServer = inject('engine').kind === 'postgres';
const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31);
const minutes = Number(process.env.FUZZ_MINUTES ?? 0);
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

type Step = {
  /** What is awaited before the step: nothing, a turn of the event loop, some milliseconds, or all steps in flight. */
  readonly pause: 'none' | 'turn' | 'moment' | 'all';
  readonly account: number;
  readonly place: number;
} & (
  | /** Sent so many times, one after the other: the response to the first may be cached for the next. */
  {
      readonly kind: 'read';
      readonly request: number;
      readonly times: number;
      readonly token: 'lasting' | 'temporary';
    }
  | { readonly kind: 'activate'; readonly template: number; readonly endpoint: 'REST' | 'GraphQL' }
  | DirectChange
  | { readonly kind: 'token'; readonly makes: boolean }
  | { readonly kind: 'cut' }
  | { readonly kind: 'lag'; readonly milliseconds: number }
  | { readonly kind: 'end readers' }
  | { readonly kind: 'switch'; readonly way: Way }
);

/** These values half of the time: conflicts on the same data find more errors. */
const often = (some: number | readonly number[], others: fc.Arbitrary<number>) =>
  fc.oneof(fc.constantFrom(...[some].flat()), others);

const where = {
  pause: fc.oneof(
    { weight: 5, arbitrary: fc.constant('none' as const) },
    { weight: 3, arbitrary: fc.constantFrom('turn' as const, 'moment' as const) },
    { weight: 2, arbitrary: fc.constant('all' as const) },
  ),
  account: often(0, fc.nat(1)),
  place: often(0, fc.nat(3)),
};
const held: fc.Arbitrary<Holding> = fc.record({
  level: fc.constantFrom(...levels),
  before: fc.constantFrom(0, 5, 20),
  after: fc.constantFrom(5, 20, 50),
});
const stepOf = {
  read: fc.record({
    ...where,
    kind: fc.constant('read' as const),
    request: often(favourites, fc.nat(reads.length - 1)),
    times: fc.integer({ min: 1, max: 5 }),
    token: fc.constantFrom('lasting' as const, 'lasting' as const, 'temporary' as const),
  }),
  activate: fc.record({
    ...where,
    kind: fc.constant('activate' as const),
    template: fc.nat(2),
    endpoint: fc.constantFrom('REST' as const, 'GraphQL' as const),
  }),
  // On the embedded engine nothing else runs while a transaction is open, so there is no use in holding one open.
  write: fc.record(
    {
      ...where,
      kind: fc.constant('write' as const),
      table: fc.constantFrom(...tables),
      asReplica: fc.boolean(),
      ...(isServer && { held }),
    },
    { requiredKeys: ['pause', 'account', 'place', 'kind', 'table', 'asReplica'] },
  ),
  import: fc.record(
    { ...where, kind: fc.constant('import' as const), wanted: fc.boolean(), ...(isServer && { held }) },
    { requiredKeys: ['pause', 'account', 'place', 'kind', 'wanted'] },
  ),
  token: fc.record({ ...where, kind: fc.constant('token' as const), makes: fc.boolean() }),
  restore: fc.record({ ...where, kind: fc.constant('restore' as const), table: fc.constantFrom(...leaves) }),
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
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 24, arbitrary: stepOf.read },
  { weight: 4, arbitrary: stepOf.activate },
  { weight: 6, arbitrary: stepOf.write },
  { weight: 3, arbitrary: stepOf.import },
  { weight: 2, arbitrary: stepOf.token },
  // Restoring takes the COPY protocol or files on the server, neither of which the embedded engine has.
  ...(isServer ? [{ weight: 1, arbitrary: stepOf.restore }] : []),
);
/** Templates that their owners change while other accounts import and remove them. */
const sharing: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: stepOf.read.map((next) => ({ ...next, request: favourites[1] ?? 0 })) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(stepOf.write, held, fc.constantFrom('DttTemplate' as const, 'DttTemplateSegment' as const))
      .map(([next, held, table]) => ({ ...next, asReplica: false, held, table })),
  },
  { weight: 2, arbitrary: stepOf.import },
);
const programs = (steps: fc.Arbitrary<Step>) =>
  fc.array(steps, { minLength: 40, maxLength: 120, size: 'max' });

/** Runs the steps, several at once, and returns what the reads saw. */
async function run(program: readonly Step[]): Promise<Seen[]> {
  const seen: Seen[] = [];
  let inFlight: Promise<unknown>[] = [];
  for (const next of program) {
    if (next.pause === 'turn') await new Promise(setImmediate);
    if (next.pause === 'moment') await new Promise((settle) => setTimeout(settle, 3));
    if (next.pause === 'all') await Promise.all(inFlight.splice(0));
    const taken = take(next, seen);
    // A failure while others are awaited is reported when this one is awaited.
    taken.catch(() => {});
    inFlight.push(taken);
    // Limits the steps in flight to what the machine can handle.
    if (inFlight.length >= 16) inFlight = [Promise.all(inFlight)];
    if (inFlight.length === 1 && next.pause === 'all') await inFlight[0];
  }
  await Promise.all(inFlight);
  return seen;
}

async function take(next: Step, seen: Seen[]): Promise<void> {
  const account = at(accounts, next.account);
  if (next.kind === 'read') {
    const temp = next.token === 'temporary' ? temporary.get(account)?.at(-1) : undefined;
    for (let time = 0; time < next.times; time++)
      seen.push(await read(next.place, account, at(reads, next.request), temp));
  } else if (next.kind === 'activate') {
    const template = at(account.dttTemplates, next.template);
    await activateAt(at(gateways, next.place), account, template, next.endpoint, acknowledged, gateways);
  } else if (next.kind === 'cut') await proxy?.terminate();
  else if (next.kind === 'lag') await lag(own, next.milliseconds);
  else if (next.kind === 'end readers') await endReaders(own);
  else if (next.kind === 'switch') await announceBy(own, next.way);
  else acknowledged.raise(await change(next, account));
}

/** Changes data directly in the database, and returns the new counts once the change is acknowledged. */
async function change(
  next: Exclude<Step, { kind: 'read' | 'activate' | 'cut' | 'lag' | 'end readers' | 'switch' }>,
  account: Account,
) {
  if (next.kind === 'token') return changeTokens(account, next.makes);
  return changeDirectly(own, accounts, account, next);
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

async function check(steps: fc.Arbitrary<Step>, limit = timeLimit, runProgram = run): Promise<void> {
  // Not fast-check's own time limit, which would let a running program continue during the next test.
  const end = Date.now() + limit;
  const property = fc.asyncProperty(programs(steps), async (program) => {
    // Activations of the program before are in the counts by now.
    for (const { floor } of gateways) floor.activations.length = 0;
    acknowledged.activations.length = 0;
    const seen = await runProgram(program);
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
  });
  // Failures depend on timing, so shrinking a program would prove nothing.
  for (let next = seed; Date.now() < end; next++)
    await fc.assert(property, { seed: next, numRuns: 1, endOnFailure: true });
}

/** Runs programs while the feed of the first gateway is silent. */
function checkSilence(): Promise<void> {
  // The silence alone takes most of the time limit.
  return check(step, timeLimit / 8, async (program) => {
    proxy?.deafen();
    const seen = await run(program);
    await sleep(longestSilence);
    seen.push(...(await readNewest()));
    proxy?.release();
    return seen;
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

describe('no read is older than what its gateway knew', () => {
  it(`with reads and writes at random (seed ${seed})`, () => check(step), testTimeout);

  it(
    `while owners change templates in transactions, and others import them (seed ${seed})`,
    ({ skip }) => {
      skip(!isServer, 'on the embedded engine nothing else runs during a transaction');
      return check(sharing);
    },
    testTimeout,
  );

  it(
    `while the feed of a gateway is cut repeatedly (seed ${seed})`,
    ({ skip }) => {
      skip(!isServer, 'the embedded engine has no connection to cut');
      return check(fc.oneof({ weight: 30, arbitrary: step }, { weight: 1, arbitrary: stepOf.cut }));
    },
    testTimeout,
  );

  it(
    `while the feed of a gateway is silent for longer than its timeout (seed ${seed})`,
    ({ skip }) => {
      skip(!isServer, 'the embedded engine has no connection that could fall silent');
      return checkSilence();
    },
    testTimeout,
  );

  describe('with announcements by messages in the log', () => {
    needsEngine('postgres', 'the embedded engine has no logical decoding');
    beforeAll(async () => {
      if (!isServer) return;
      await own.query('CREATE PUBLICATION dovetail');
      await switchTo('logical');
    });

    const late = { weight: 3, arbitrary: stepOf.lag };

    it(
      `while commits become visible late, and readers of the log are terminated (seed ${seed})`,
      () =>
        check(fc.oneof({ weight: 40, arbitrary: step }, late, { weight: 1, arbitrary: stepOf.endReaders })),
      testTimeout,
    );

    it(
      `while owners change templates in transactions that become visible late (seed ${seed})`,
      () => check(fc.oneof({ weight: 40, arbitrary: sharing }, late)),
      testTimeout,
    );

    it(
      `while the feed of a gateway is cut repeatedly (seed ${seed})`,
      () => check(fc.oneof({ weight: 30, arbitrary: step }, late, { weight: 1, arbitrary: stepOf.cut })),
      testTimeout,
    );

    it(
      `while the feed of a gateway is silent for longer than its timeout (seed ${seed})`,
      () => checkSilence(),
      testTimeout,
    );

    it(
      `while the database is switched between NOTIFY and messages in the log (seed ${seed})`,
      async () => {
        await check(fc.oneof({ weight: 40, arbitrary: step }, late, { weight: 1, arbitrary: stepOf.switch }));
        await switchTo('notify');
      },
      testTimeout,
    );
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

describe('a gateway whose feed is cut off without an error', () => {
  needsEngine('postgres', 'the embedded engine has no connection to cut');

  it('serves nothing stale once it detects that, nor once the feed is back', async () => {
    const first = at(gateways, 0).gateway;
    await readAll();
    proxy?.hold();
    for (const account of accounts)
      for (const table of tables) acknowledged.raise(await write(own, account, table));
    await expect.poll(() => first.feed.listening, { interval: 5 }).toBe(false);
    await Promise.all(gateways.slice(1).map((watched) => hasCaughtUp(watched, acknowledged)));
    expect(await findStale(own, await readNewest())).toEqual([]);
    proxy?.release();
    await expect.poll(() => first.feed.listening, { interval: 5 }).toBe(true);
    expect(await findStale(own, await readNewest())).toEqual([]);
    const { hits } = first.responseCache.counters;
    const readAgain = async () => {
      await readAll();
      return first.responseCache.counters.hits;
    };
    await expect.poll(readAgain).toBeGreaterThan(hits);
  });
});
