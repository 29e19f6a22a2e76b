/**
 * Coherence with standbys: random reads and writes through several gateways over a primary with two standbys, which are
 * paused, cut off and stopped meanwhile. No read may return a state that is older than what was known when it began: to its
 * gateway, to its client by the position of a write through another gateway, or by what the viewer has read there before.
 */

import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FeedMode } from '../../../src/database/feed/changeFeed.ts';
import type { Replicas } from '../../../src/extensions/standbys/replicas.ts';
import type { Seen } from '../../coherence/floor.ts';
import { minutes, runPrograms, type StepOf, seed, usualSteps, where } from '../../coherence/programs.ts';
import {
  at,
  checkProgram,
  createAccounts,
  hasCaughtUp,
  takeUsual,
  type Watched,
  type Written,
  watch,
} from '../../coherence/watched.ts';
import type { Account } from '../../support/accounts.ts';
import { startCluster } from '../../support/cluster.ts';
import { readLog } from '../../support/feed.ts';
import { openAt, type TestGatewayOptions } from '../../support/gateway.ts';
import { openStandbyGateway } from './gateways.ts';

const timeLimit = minutes > 0 ? (minutes * 60_000) / 2 : 2_000;

const name = 'things';
const cluster = await startCluster(2, { max_standby_streaming_delay: '50ms' });
await cluster.createDatabase(name);
const url = `${cluster.primary.url}/${name}`;
const database = await openAt(url);
const accounts = await createAccounts(database);
await database.close();
await cluster.isReplayed();
const own = new pg.Pool({ connectionString: url, max: 20 });
/** The connections of the gateways to the standbys. */
const proxies = await Promise.all(cluster.standbys.map((standby) => standby.openTcpProxy(name)));
let gateways: Watched[];
let replicas: Replicas[];
afterAll(async () => {
  await own.end();
  await cluster.stop();
});

/** The last write of each account through a gateway. */
const written = new Map<Account, Written>();

/** Opens gateways with this kind of change feed. The second one caches nothing. */
async function openGateways(wanted: FeedMode): Promise<Watched[]> {
  const standbys = proxies.map((proxy) => proxy.url);
  replicas = [];
  await own.query('SELECT announce_by($1)', [wanted]);
  const start = async (options: TestGatewayOptions = {}) => {
    const gateway = await openStandbyGateway(await openAt(url), standbys, options);
    replicas.push(gateway.replicas);
    return watch(gateway);
  };
  return [await start(), await start({ cacheBytes: 0 }), await start()];
}

const faults = ['pause', 'resume', 'cut', 'mend', 'hold', 'silence', 'terminate', 'stop'] as const;

/** Causes a fault of a standby, or ends it. */
async function causeFault(index: number, fault: (typeof faults)[number]): Promise<void> {
  const standby = at(cluster.standbys, index);
  const proxy = at(proxies, index);
  if (fault === 'pause') await standby.pauseReplay();
  else if (fault === 'cut') standby.upstream.hold();
  else if (fault === 'silence') proxy.hold();
  else if (fault === 'terminate') await proxy.terminate();
  else if (fault === 'stop') {
    await standby.stop('immediate');
    await standby.start();
  } else await mend(index);
}

async function mend(index: number): Promise<void> {
  const standby = at(cluster.standbys, index);
  standby.upstream.release();
  at(proxies, index).release();
  await standby.resumeReplay();
}

const faulty = fc.record({
  ...where,
  kind: fc.constant('fault' as const),
  fault: fc.constantFrom(...faults),
});
const step = fc.oneof({ weight: 34, arbitrary: usualSteps }, { weight: 2, arbitrary: faulty });

const take = (next: StepOf<typeof step>, seen: Seen[]): Promise<void> =>
  next.kind === 'fault'
    ? inTurn(() => causeFault(next.place, next.fault))
    : takeUsual({ own, gateways, accounts }, next, seen, written);

/** Causes faults one after the other: a standby that is stopped cannot be paused. */
let lastFault: Promise<unknown> = Promise.resolve();
function inTurn(act: () => Promise<void>): Promise<void> {
  const done = lastFault.then(act);
  lastFault = done.catch(() => {});
  return done;
}

/** Waits until all gateways have processed the announcements of all acknowledged changes, but those whose feed reconnected. */
async function haveCaughtUp(): Promise<void> {
  for (const watched of gateways) {
    const { feed } = watched.gateway;
    await expect.poll(() => feed.listening, { interval: 5, timeout: 30_000 }).toBe(true);
    if (feed.reconnects === 0) await hasCaughtUp(watched);
  }
}

const enoughReads = 5;

/** The number of reads from the standby with the fewest. */
function fewestReads(): number {
  const byStandby = [0, 1].map((index) =>
    replicas.reduce((sum, { addresses }) => sum + at(addresses, index).reads, 0),
  );
  return Math.min(...byStandby);
}

// The test of coherence without standbys has both modes.
const modes: readonly FeedMode[] = !readLog ? ['notify'] : minutes > 0 ? ['notify', 'logical'] : ['logical'];

describe.each<FeedMode>(modes)('no read is older than what was known, with the change feed %s', (feed) => {
  beforeAll(async () => {
    gateways = await openGateways(feed);
  });
  // The check that all responses were as documented takes long after many minutes.
  afterAll(async () => {
    await Promise.all(gateways.map(({ gateway }) => gateway.close()));
  }, 60_000 + timeLimit);

  it(
    `while standbys lag, are cut off and stop (seed ${seed})`,
    async () => {
      const end = Date.now() + timeLimit;
      let seen: Seen[] = [];
      await runPrograms(
        step,
        (next) => take(next, seen),
        // On a slow machine one program may take all the time, with the standbys unavailable from its beginning.
        () => Date.now() < end || fewestReads() <= enoughReads,
        async (run) => {
          seen = [];
          written.clear();
          await checkProgram({ own, gateways, accounts, haveCaughtUp }, run, seen);
          for (const { position } of written.values()) expect(position).toBeDefined();
          for (const [index] of proxies.entries()) await mend(index);
        },
      );
    },
    timeLimit + 60_000,
  );
});
