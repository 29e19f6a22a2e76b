/**
 * Coherence: random reads and writes, many in flight, through both APIs of several gateways and directly in the database. No
 * read may return a state that is older than what its gateway knew when the read began.
 *
 * What a gateway knows is defined in `coherence/writes.ts`, where rows count their own changes, and in `coherence/floor.ts`.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { listenToServer } from '../../src/database/feed/notify.ts';
import { readLog } from '../support/feed.ts';
import { openAt, openTestGateway, type TestGateway } from '../support/gateway.ts';
import { startPostgres } from '../support/postgres.ts';
import { openTcpProxy } from '../support/tcpProxy.ts';
import type { Seen } from './floor.ts';
import { minutes, runPrograms, type StepOf, seed, type UsualStep, usualSteps, where } from './programs.ts';
import {
  checkProgram,
  createAccounts,
  hasCaughtUp,
  readNewest,
  takeUsual,
  type Watched,
  watch,
} from './watched.ts';
import { announceBy, endReaders, lag, type Way } from './writes.ts';

/** How long, in milliseconds, each test runs programs. */
const timeLimit = minutes > 0 ? (minutes * 60_000) / 4 : 1_000;
const testTimeout = timeLimit + 60_000;
/** The longest time, in milliseconds, after which a gateway with a silent feed serves no response from its cache any more. */
const longestSilence = 4_200;

// A server of its own, whose log can be read, and whose commits can be delayed.
const server = await startPostgres({ max_connections: '200', wal_level: 'logical' });
await server.createDatabase('coherence');
const open = () => openAt(`${server.url}/coherence`);
const database = await open();
const accounts = await createAccounts(database);
/** The connections of the test itself, which are not slowed down. */
const own = new pg.Pool({ ...database.pool.options, max: 20 });
// The server may end connections before the pool does.
own.on('error', () => {});
beforeEach(slowDown);
const proxy = await openTcpProxy(database);
const openChangeFeed = () => {
  const direct = { connectionString: proxy.url };
  return listenToServer(direct, direct, { readLog });
};
const gateways = [
  // The feed of the first one can be cut, and fall silent.
  watch(await openTestGateway({ ...database, openChangeFeed })),
  watch(await openTestGateway(await open())),
  watch(await openTestGateway(await open())),
];
afterAll(async () => {
  await Promise.all(gateways.map(({ gateway }) => gateway.close()));
  await proxy.close();
  await own.end();
  await server.stop();
});

/** Delays some results of the gateways' queries, as a network would, so that more happens in the meantime. */
function slowDown(): void {
  const query = pg.Pool.prototype.query;
  vi.spyOn(pg.Pool.prototype, 'query').mockImplementation(function (this: pg.Pool, ...given: unknown[]) {
    const response = Reflect.apply(query, this, given);
    const delay = this !== own && Math.random() < 0.3 ? Math.random() * 8 : 0;
    return delay === 0 ? response : Promise.resolve(response).then((rows) => sleep(delay, rows));
  });
}

const stepOf = {
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
type Step = UsualStep | StepOf<(typeof stepOf)[keyof typeof stepOf]>;
type Steps = fc.Arbitrary<Step>;
/** @param weight how often the usual steps are taken, beside these others. */
const also = (weight: number, ...others: { weight: number; arbitrary: Steps }[]): Steps =>
  fc.oneof({ weight, arbitrary: usualSteps }, ...others);

async function take(next: Step, seen: Seen[]): Promise<void> {
  if (next.kind === 'cut') await proxy.terminate();
  else if (next.kind === 'lag') await lag(own, next.milliseconds);
  else if (next.kind === 'end readers') await endReaders(own);
  else if (next.kind === 'switch') await announceBy(own, next.way);
  else await takeUsual(scene, next, seen);
}

async function isListening({ gateway }: Watched): Promise<void> {
  await expect.poll(() => gateway.feed.listening, { interval: 5 }).toBe(true);
}

/** A gateway that begins to listen between a commit and its acknowledgement knows of the commit, while this test does not. */
async function haveCaughtUp(): Promise<void> {
  await Promise.all(gateways.map(isListening));
  await Promise.all(gateways.map(hasCaughtUp));
}

const scene = { own, gateways, accounts, haveCaughtUp };

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
    (run) => {
      seen = [];
      return checkProgram(scene, () => act(run, seen), seen);
    },
  );
}

/** Runs programs while the feed of the first gateway is silent. The silence alone takes most of the time limit. */
function checkSilence(): Promise<void> {
  return check(usualSteps, timeLimit / 8, async (run, seen) => {
    proxy.deafen();
    await run();
    await sleep(longestSilence);
    seen.push(...(await readNewest(scene)));
    proxy.release();
  });
}

/** Has the database announce in another way, and waits until all gateways listen to that. */
async function switchTo(way: 'notify' | 'logical'): Promise<void> {
  await announceBy(own, way);
  const modes = () => gateways.flatMap(({ gateway: { feed } }) => (feed.listening ? [feed.mode] : []));
  const wanted = gateways.map(() => way);
  await vi.waitFor(() => expect(modes()).toEqual(wanted), { interval: 5, timeout: 15_000 });
}

const cut = { weight: 1, arbitrary: stepOf.cut };
const late = { weight: 3, arbitrary: stepOf.lag };

describe('no read is older than what its gateway knew', () => {
  it.each<[string, () => Promise<void>]>([
    ['with reads and writes at random', () => check(usualSteps)],
    ['while the feed of a gateway is cut repeatedly', () => check(also(30, cut))],
    ['while the feed of a gateway is silent for longer than its timeout', checkSilence],
  ])(`%s (seed ${seed})`, (_, run) => run(), testTimeout);

  describe('with announcements by messages in the log', () => {
    beforeAll(async () => {
      await own.query('CREATE PUBLICATION dovetail');
      await switchTo('logical');
    });
    afterAll(() => switchTo('notify'));

    const ended = { weight: 1, arbitrary: stepOf.endReaders };
    const switched = { weight: 1, arbitrary: stepOf.switch };

    it.each<[string, () => Promise<void>]>([
      [
        'while commits become visible late, and readers of the log are terminated',
        () => check(also(40, late, ended)),
      ],
      ['while the feed of a gateway is cut repeatedly', () => check(also(30, late, cut))],
      ['while the feed of a gateway is silent for longer than its timeout', checkSilence],
      [
        'while the database is switched between NOTIFY and messages in the log',
        () => check(also(40, late, switched)),
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
});
