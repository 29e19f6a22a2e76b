/**
 * Coherence: random reads and writes, many in flight, through both doors of several gateways and past them, and no
 * read ever answers with something older than what its gateway knew when the read began.
 *
 * Every row under test counts its own changes in a column that answers show, so that "older" is "less". A trigger of
 * the test's, which fires after the announcing one, sends the count along on the same channel: when a gateway's feed
 * tells the count, the gateway has processed the announcement of that very change.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { type Change, followServer } from '../src/database/feed.ts';
import { type Account, createAccount, importTemplate } from './accounts.ts';
import {
  needsEngine,
  openBeside,
  openTestDatabase,
  openTestGateway,
  type TestDatabase,
  type TestGateway,
} from './gateway.ts';
import { type Line, openLine } from './line.ts';

const isServer = inject('engine').kind === 'postgres';
/** The same seed makes the same programs: `SEED=… npx vitest run test/coherence.test.ts`. */
const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31);
/** How long, in milliseconds, programs are run. */
const timeLimit = 8_000;
const gatewayCount = 3;

let database: TestDatabase;
/** The test's own connections, which are as fast as they can be. */
let own: pg.Pool;
let line: Line | undefined;
let gateways: Watched[];
let accounts: readonly Account[];

/** What is counted: a row, by its table and id. */
type Register = string;

const marker = 0;

const triggers = `
  CREATE TABLE history (user_id int, version int, active int);
  CREATE FUNCTION count_user() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    NEW.rank := OLD.rank + 1;
    INSERT INTO history VALUES (NEW.id, NEW.rank, coalesce(NEW."activeTemplateId", 0));
    RETURN NEW;
  END $$;
  CREATE TRIGGER count_user BEFORE UPDATE ON "User" FOR EACH ROW EXECUTE FUNCTION count_user();
  CREATE FUNCTION mark() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    EXECUTE format('SELECT pg_notify(''dovetail'', ''${marker} %s:'' || id || '':'' || %s) FROM changed', TG_TABLE_NAME, TG_ARGV[0]);
    RETURN NULL;
  END $$;
  CREATE TRIGGER mark AFTER UPDATE ON "User" REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION mark('rank');
  CREATE TRIGGER mark AFTER UPDATE ON "DttTemplate" REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION mark('name');
  CREATE TRIGGER mark AFTER UPDATE ON "DttSession" REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION mark('name');
  CREATE TRIGGER mark AFTER UPDATE ON "TrainerSegment" REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION mark('points');
  UPDATE "DttTemplate" SET name = '0';
  UPDATE "DttSession" SET name = '0';
  UPDATE "TrainerSegment" SET points = 0;`;

beforeAll(async () => {
  database = await openTestDatabase();
  accounts = [await createAccount(database.client, 'alice'), await createAccount(database.client, 'bob')];
  const [alice, bob] = accounts;
  if (alice && bob) await importTemplate(database.client, bob, alice.dttTemplates[0]);
  await database.pool.query(triggers);
  own = new pg.Pool(database.pool.options);
  slowDown();
  if (isServer) line = await openLine(database);
  const url = line?.url;
  gateways = await Promise.all(
    Array.from({ length: gatewayCount }, async (_, index) => {
      const beside = await openBeside(database);
      // The feed of the first one can be cut.
      const cuttable =
        index === 0 && url !== undefined
          ? { ...beside, follow: () => followServer({ connectionString: url }) }
          : beside;
      return watch(await openTestGateway(cuttable));
    }),
  );
});
afterAll(async () => {
  await Promise.all((gateways ?? []).map(({ gateway }) => gateway.close()));
  await line?.close();
  await own?.end();
  await database?.close();
});

/** Has the gateways wait for some of their answers, as a network would, so that more happens in the meantime. */
function slowDown(): void {
  const query = pg.Pool.prototype.query;
  vi.spyOn(pg.Pool.prototype, 'query').mockImplementation(function (this: pg.Pool, ...given: unknown[]) {
    const answer = Reflect.apply(query, this, given);
    const delay = this !== own && Math.random() < 0.3 ? Math.random() * 8 : 0;
    return delay === 0 ? answer : Promise.resolve(answer).then((rows) => sleep(delay, rows));
  });
}

/** What a read that begins now must not be older than. */
class Floor {
  readonly counts = new Map<Register, number>();
  /** Activations that were acknowledged, whose counts nobody knows yet. */
  readonly activations: Activation[] = [];

  raise(register: Register, count: number): void {
    if (count > (this.counts.get(register) ?? 0)) this.counts.set(register, count);
  }
  raiseTo(other: Floor): void {
    for (const [register, count] of other.counts) this.raise(register, count);
    this.activations.push(...other.activations);
  }
  copy(): Floor {
    const copy = new Floor();
    copy.raiseTo(this);
    return copy;
  }
}

interface Activation {
  readonly userId: number;
  readonly templateId: number;
  /** The highest count of the user's that was known when the activation was asked for: its own is higher. */
  readonly after: number;
}

/** Everything that was acknowledged to anybody. */
const acknowledged = new Floor();

interface Watched {
  readonly gateway: TestGateway;
  /** What this gateway knows: the announcements that it has processed, and the writes through it. */
  readonly floor: Floor;
}

function watch(gateway: TestGateway): Watched {
  const floor = new Floor();
  // The gateway's own parts subscribed before, so they have processed what is told here.
  gateway.feed.subscribe((change: Change) => {
    if (change.kind === 'all') {
      // Whatever was missed: from here on nothing that was read before counts.
      if (gateway.feed.listening) floor.raiseTo(acknowledged);
    } else if (change.userId === marker) {
      const [table, id, count] = change.table.split(':');
      floor.raise(`${table} ${id}`, Number(count));
    }
  });
  return { gateway, floor };
}

/** What a read shows of the registers, and the id of the active template, 0 for none. */
interface Sight {
  counts: [Register, number][];
  active?: number;
}

interface Read {
  /** Below `/api/v1`, or a query. */
  readonly ask: string;
  readonly by: 'REST' | 'POST' | 'GET';
  // biome-ignore lint/suspicious/noExplicitAny: each request is written beside what reads its answer.
  see(data: any): Sight;
}

interface Row {
  id: number;
  name: string;
  isActive?: boolean;
  TrainerSegment?: { id: number; points: number }[];
}

const seeTemplates = (rows: Row[]): Sight => ({
  counts: rows.map(({ id, name }) => [`DttTemplate ${id}`, Number(name)]),
  active: rows.find(({ isActive }) => isActive)?.id ?? 0,
});
const seeActive = (row: Row | null): Sight => ({ ...seeTemplates(row ? [row] : []), active: row?.id ?? 0 });
const seeSessions = (rows: Row[]): Sight => ({
  counts: rows.flatMap(({ id, name, TrainerSegment = [] }): [Register, number][] => [
    [`DttSession ${id}`, Number(name)],
    ...TrainerSegment.map((segment): [Register, number] => [`TrainerSegment ${segment.id}`, segment.points]),
  ]),
});
const seeUser = (user: { id: number; rank: number }): Sight => ({
  counts: [[`User ${user.id}`, user.rank]],
});

const viewerQuery = '{ viewer { id: databaseId rank activeDttTemplate { id: databaseId name isActive } } }';
const templatesQuery = '{ dttTemplates { nodes { id: databaseId name isActive } } }';
const sessionsQuery =
  '{ dttSessions(first: 2) { nodes { id: databaseId name TrainerSegment: segments { id: databaseId points } } } }';

const byQuery = (by: 'POST' | 'GET'): Read[] => [
  {
    ask: viewerQuery,
    by,
    see: ({ viewer }) => ({
      ...seeActive(viewer.activeDttTemplate),
      counts: [...seeActive(viewer.activeDttTemplate).counts, ...seeUser(viewer).counts],
    }),
  },
  { ask: templatesQuery, by, see: ({ dttTemplates }) => seeTemplates(dttTemplates.nodes) },
  { ask: sessionsQuery, by, see: ({ dttSessions }) => seeSessions(dttSessions.nodes) },
];

const reads: readonly Read[] = [
  { ask: '/users/me', by: 'REST', see: seeUser },
  { ask: '/dtt/templates/active', by: 'REST', see: seeActive },
  { ask: '/dtt/templates', by: 'REST', see: ({ data }) => seeTemplates(data) },
  { ask: '/dtt/sessions?limit=2', by: 'REST', see: ({ data }) => seeSessions(data) },
  { ask: '/dtt/sessions/latest', by: 'REST', see: (row) => seeSessions([row]) },
  ...byQuery('POST'),
  ...byQuery('GET'),
];

interface Seen extends Sight {
  readonly what: string;
  readonly userId: number;
  readonly floor: Floor;
}

async function ask({ url }: TestGateway, { token }: Account, { ask, by }: Read): Promise<unknown> {
  const Authorization = `Bearer ${token}`;
  if (by === 'REST') {
    const response = await fetch(`${url}/api/v1${ask}`, { headers: { Authorization } });
    return (await response.json()).data;
  }
  const response =
    by === 'GET'
      ? await fetch(`${url}/graphql?${new URLSearchParams({ query: ask })}`, { headers: { Authorization } })
      : await post(url, Authorization, ask);
  return (await response.json()).data;
}

function post(url: string, Authorization: string, query: string): Promise<Response> {
  const headers = { Authorization, 'Content-Type': 'application/json' };
  return fetch(`${url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) });
}

async function read(place: number, account: Account, request: Read): Promise<Seen> {
  const { gateway, floor } = at(gateways, place);
  // While a gateway hears nothing it answers out of the database, where all that was acknowledged is.
  const begun = gateway.feed.listening ? floor.copy() : acknowledged.copy();
  const data = await ask(gateway, account, request);
  const what = `${request.by} ${request.ask} of ${account.username} at gateway ${place}`;
  return { ...request.see(data), what, userId: account.userId, floor: begun };
}

async function activate(place: number, account: Account, index: number, door: 'REST' | 'GraphQL') {
  const { gateway, floor } = at(gateways, place);
  const register = `User ${account.userId}`;
  const templateId = at(account.dttTemplates, index);
  const known = [acknowledged, ...gateways.map((watched) => watched.floor)];
  const after = Math.max(...known.map(({ counts }) => counts.get(register) ?? 0));
  const Authorization = `Bearer ${account.token}`;
  const response =
    door === 'GraphQL'
      ? await post(
          gateway.url,
          Authorization,
          `mutation { activateTemplate(databaseId: ${templateId}) { scheduleTypeChanged } }`,
        )
      : await fetch(`${gateway.url}/api/v1/dtt/templates/${templateId}`, {
          method: 'POST',
          headers: { Authorization, 'Content-Type': 'application/json' },
          body: '{"isActive":true}',
        });
  const activation = { userId: account.userId, templateId, after };
  floor.activations.push(activation);
  acknowledged.activations.push(activation);
  expect(await response.json()).not.toHaveProperty('errors');
  expect(response.status).toBe(200);
}

/** Changes a row past all gateways. */
async function write(account: Account, table: 'User' | 'DttTemplate' | 'DttSession' | 'TrainerSegment') {
  const [sql, id] = {
    // A trigger counts these, since an activation has to count, too.
    User: ['UPDATE "User" SET rank = rank WHERE id = $1 RETURNING id, rank AS count', account.userId],
    DttTemplate: [
      'UPDATE "DttTemplate" SET name = (name::int + 1)::text WHERE id = $1 RETURNING id, name AS count',
      account.dttTemplates[0],
    ],
    DttSession: [
      'UPDATE "DttSession" SET name = (name::int + 1)::text WHERE id = $1 RETURNING id, name AS count',
      account.dttSessions[0],
    ],
    TrainerSegment: [
      `UPDATE "TrainerSegment" SET points = points + 1
       WHERE id = (SELECT min(id) FROM "TrainerSegment" WHERE "sessionId" = $1) RETURNING id, points AS count`,
      account.dttSessions[0],
    ],
  }[table] as [string, number];
  const { rows } = await own.query<{ id: number; count: string | number }>(sql, [id]);
  for (const row of rows) acknowledged.raise(`${table} ${row.id}`, Number(row.count));
}

/** What was wrong with what was seen, once the whole history is known. */
async function findStale(seen: readonly Seen[]): Promise<string[]> {
  const { rows } = await own.query<{ user_id: number; version: number; active: number }>(
    'SELECT user_id, version, active FROM history ORDER BY version',
  );
  const stale: string[] = [];
  for (const { what, userId, counts, active, floor } of seen) {
    for (const activation of floor.activations) {
      const own = rows.find(
        ({ user_id, version, active: id }) =>
          user_id === activation.userId && version > activation.after && id === activation.templateId,
      );
      if (own) floor.raise(`User ${own.user_id}`, own.version);
    }
    for (const [register, count] of counts) {
      const least = floor.counts.get(register) ?? 0;
      if (count < least) stale.push(`${what} saw ${count} of ${register}, ${least} was known`);
    }
    const least = floor.counts.get(`User ${userId}`) ?? 0;
    const wasActive = rows.some(
      (row) => row.user_id === userId && row.version >= least && row.active === active,
    );
    if (active !== undefined && least > 0 && !wasActive)
      stale.push(`${what} saw ${active} active, which it was not since ${least}`);
  }
  return stale;
}

type Step = {
  /** What is waited for before the step: nothing, a turn of the event loop, some milliseconds, all that is under way. */
  readonly pause: 'none' | 'turn' | 'moment' | 'all';
  readonly account: number;
  readonly place: number;
} /** Asked so many times, one after the other: what the first one left in memory may answer the next. */ & (
  | { readonly kind: 'read'; readonly request: number; readonly times: number }
  | { readonly kind: 'activate'; readonly template: number; readonly door: 'REST' | 'GraphQL' }
  | { readonly kind: 'write'; readonly table: 'User' | 'DttTemplate' | 'DttSession' | 'TrainerSegment' }
  | { readonly kind: 'cut' }
);

/** The one value half of the time: where many meet, more goes wrong. */
const often = (one: number, others: fc.Arbitrary<number>) => fc.oneof(fc.constant(one), others);

const where = {
  pause: fc.oneof(
    { weight: 5, arbitrary: fc.constant('none' as const) },
    { weight: 3, arbitrary: fc.constantFrom('turn' as const, 'moment' as const) },
    { weight: 2, arbitrary: fc.constant('all' as const) },
  ),
  account: often(0, fc.nat(1)),
  place: often(0, fc.nat(gatewayCount - 1)),
};
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      ...where,
      kind: fc.constant('read' as const),
      request: often(
        reads.findIndex(({ ask }) => ask === viewerQuery),
        fc.nat(reads.length - 1),
      ),
      times: fc.integer({ min: 1, max: 5 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      ...where,
      kind: fc.constant('activate' as const),
      template: fc.nat(2),
      door: fc.constantFrom('REST' as const, 'GraphQL' as const),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      ...where,
      kind: fc.constant('write' as const),
      table: fc.constantFrom(
        'User' as const,
        'DttTemplate' as const,
        'DttSession' as const,
        'TrainerSegment' as const,
      ),
    }),
  },
);
const cut = fc.record({ ...where, kind: fc.constant('cut' as const) });
const programs = (steps: fc.Arbitrary<Step>) => fc.array(steps, { minLength: 20, maxLength: 120 });

/** Runs the steps, as many at once as they say, and answers with what the reads saw. */
async function run(program: readonly Step[]): Promise<Seen[]> {
  const seen: Seen[] = [];
  let underWay: Promise<unknown>[] = [];
  for (const next of program) {
    if (next.pause === 'turn') await new Promise(setImmediate);
    if (next.pause === 'moment') await new Promise((settle) => setTimeout(settle, 3));
    if (next.pause === 'all') await Promise.all(underWay.splice(0));
    underWay.push(take(next, seen));
    // A bound for what is in flight: the machine has to get through it.
    if (underWay.length >= 16) underWay = [Promise.all(underWay)];
    if (underWay.length === 1 && next.pause === 'all') await underWay[0];
  }
  await Promise.all(underWay);
  return seen;
}

async function take(next: Step, seen: Seen[]): Promise<void> {
  const account = at(accounts, next.account);
  if (next.kind === 'read') {
    for (let time = 0; time < next.times; time++)
      seen.push(await read(next.place, account, at(reads, next.request)));
  } else if (next.kind === 'activate') await activate(next.place, account, next.template, next.door);
  else if (next.kind === 'write') await write(account, next.table);
  else await line?.terminate();
}

/** Reads everything everywhere, which by now has to be as new as what was acknowledged. */
async function readAll(): Promise<Seen[]> {
  const all = await Promise.all(
    gateways.flatMap((_, place) =>
      accounts.flatMap((account) => reads.map((request) => read(place, account, request))),
    ),
  );
  return all.map((one) => ({ ...one, floor: acknowledged.copy() }));
}

async function isListening({ gateway }: Watched): Promise<void> {
  await expect.poll(() => gateway.feed.listening, { interval: 5, timeout: 10_000 }).toBe(true);
}

/** Waits until the gateway has processed the announcement of all that was acknowledged. */
async function hasHeardAll({ floor }: Watched): Promise<void> {
  const behind = () =>
    [...acknowledged.counts].filter(([register, count]) => (floor.counts.get(register) ?? 0) < count);
  await expect.poll(behind, { interval: 2, timeout: 10_000 }).toEqual([]);
}

async function check(steps: fc.Arbitrary<Step>): Promise<void> {
  // Not fast-check's own time limit: it leaves a program that is under way to itself, beside those of the next test.
  const end = Date.now() + timeLimit;
  await fc.assert(
    fc.asyncProperty(programs(steps), async (program) => {
      if (Date.now() > end) return;
      // What was known at the end of another program is history.
      for (const { floor } of gateways) floor.activations.length = 0;
      acknowledged.activations.length = 0;
      const seen = await run(program);
      // A gateway that begins to listen between a commit and its acknowledgement has heard of it, and this test not.
      await Promise.all(gateways.map(isListening));
      // Nobody knows the counts of the activations. A write behind them all, whose count is known, is heard after them.
      for (const account of accounts) await write(account, 'User');
      await Promise.all(gateways.map(hasHeardAll));
      seen.push(...(await readAll()));
      expect(await findStale(seen)).toEqual([]);
    }),
    {
      seed,
      numRuns: 1_000,
      // What went wrong depends on the moment, so a shorter program would prove nothing.
      endOnFailure: true,
    },
  );
}

describe('no read answers with something older than its gateway knew', () => {
  it(`while everybody reads and writes (seed ${seed})`, () => check(step));

  it(`while the feed of a gateway is cut again and again (seed ${seed})`, ({ skip }) => {
    skip(!isServer, 'the embedded engine has no connection to cut');
    return check(fc.oneof({ weight: 30, arbitrary: step }, { weight: 1, arbitrary: cut }));
  });

  it('out of memory, for the most part', () => {
    // Otherwise all this would have shown that PostgreSQL is coherent.
    const sum = (counter: keyof TestGateway['kept']['counters']) =>
      gateways.reduce((total, { gateway }) => total + gateway.kept.counters[counter], 0);
    expect(sum('hits')).toBeGreaterThan(50);
    expect(sum('misses')).toBeGreaterThan(50);
    expect(sum('refused')).toBeGreaterThan(0);
  });
});

describe('a feed that was cut without a word', () => {
  needsEngine('postgres', 'the embedded engine has no connection to cut');

  it('leaves nothing stale behind once it is noticed, nor once it is back', async () => {
    const first = at(gateways, 0).gateway;
    await readAll();
    line?.hold();
    for (const account of accounts)
      for (const table of ['User', 'DttTemplate', 'DttSession', 'TrainerSegment'] as const)
        await write(account, table);
    await expect.poll(() => first.feed.listening, { interval: 5, timeout: 10_000 }).toBe(false);
    await Promise.all(gateways.slice(1).map(hasHeardAll));
    expect(await findStale(await readAll())).toEqual([]);
    line?.release();
    await expect.poll(() => first.feed.listening, { interval: 5, timeout: 10_000 }).toBe(true);
    expect(await findStale(await readAll())).toEqual([]);
    const { hits } = first.kept.counters;
    await readAll();
    expect(first.kept.counters.hits).toBeGreaterThan(hits);
  });
});

function at<Value>(values: readonly Value[], index: number): Value {
  const value = values[index];
  if (value === undefined) throw new RangeError(`there is nothing at ${index}`);
  return value;
}
