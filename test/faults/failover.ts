/**
 * The primary is lost under load, and a standby takes over: what clients see, how soon activations are accepted and
 * responses cached again, and how many acknowledged activations are gone. For 300 ms before, nothing reaches the standby:
 * what is acknowledged meanwhile, only the primary has.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { type Cluster, type Standby, startCluster } from '../support/cluster.ts';
import { freePort } from '../support/postgres.ts';
import { addAccounts } from './accounts.ts';
import { openLine } from './line.ts';
import { type LoadReport, startLoad } from './load.ts';
import { seconds } from './table.ts';
import { until, watchGateway } from './watched.ts';

/** For how long, in milliseconds, nothing reaches the standby before the primary is lost. */
const cutBefore = 300;
/** How long, in milliseconds, it takes until somebody promotes the standby. */
const untilPromoted = 1_000;
const longestRecovery = 30_000;

interface Scene {
  readonly feed: 'notify' | 'logical';
  readonly isSynchronous: boolean;
  /** Whether the gateway knows both hosts, or one address that is moved from the one to the other. */
  readonly address: 'several hosts' | 'a moved address';
}

const scenes: readonly Scene[] = (['notify', 'logical'] as const).flatMap((feed) =>
  [true, false].flatMap((isSynchronous) =>
    (['several hosts', 'a moved address'] as const).map((address) => ({ feed, isSynchronous, address })),
  ),
);

export const failoverHead = [
  'feed, standby and address',
  'what clients saw',
  'longest response',
  'accepted again after',
  'cached again after',
  'acknowledged',
  'lost',
];

export interface FailoverRow {
  readonly cells: readonly string[];
  readonly complaints: readonly string[];
}

/** @param settings of the gateway. */
export async function measureFailover(settings: Readonly<Record<string, string>>): Promise<FailoverRow[]> {
  const rows: FailoverRow[] = [];
  for (const scene of scenes) rows.push(await play(scene, settings));
  return rows;
}

async function play(scene: Scene, settings: Readonly<Record<string, string>>): Promise<FailoverRow> {
  const name = `${scene.feed}, ${scene.isSynchronous ? 'synchronous' : 'asynchronous'}, ${scene.address}`;
  process.stderr.write(`failover: ${name} …\n`);
  const cluster = await startCluster(1, { fsync: 'on' });
  const [standby] = cluster.standbys;
  if (!standby) throw new Error('there is no standby');
  const { primary } = cluster;
  const line = await openLine(primary.port);
  const metrics = await freePort();
  const ports = scene.address === 'several hosts' ? [primary.port, standby.port] : [line.port];
  const gateway = await watchGateway({
    ...settings,
    DATABASE_URL: `postgresql://postgres:postgres@${ports.map((port) => `127.0.0.1:${port}`).join()}/postgres`,
    METRICS_PORT: String(metrics),
    CHANGE_FEED: scene.feed,
  });
  try {
    await until('it serves', gateway.isReady);
    const admin = { connectionString: `${primary.url}/postgres` };
    const accounts = await addAccounts(admin, 3);
    await until('changes are heard', () => isListening(metrics));
    await cluster.isReplayed();
    if (scene.isSynchronous) await primary.set('synchronous_standby_names', standby.name);
    const load = startLoad(gateway.url, accounts);
    await until('all is well before', () => load.isWellSince(0));
    await sleep(1_000);
    const lost = performance.now();
    await loseAndPromote(cluster, standby, scene);
    const promoted = performance.now();
    line.leadTo(standby.port);
    await until('it recovers', () => load.isWellSince(promoted), longestRecovery);
    await until('changes are heard again', () => isListening(metrics), longestRecovery);
    const cached = performance.now() - promoted;
    await sleep(1_000);
    const report = await load.stop();
    return judge(name, scene, report, { lost, promoted, cached });
  } finally {
    await gateway.stop();
    line.close();
    await cluster.stop();
  }
}

async function loseAndPromote(cluster: Cluster, standby: Standby, { isSynchronous }: Scene): Promise<void> {
  standby.upstream.hold();
  await sleep(cutBefore);
  await cluster.primary.stop('immediate');
  await sleep(untilPromoted - cutBefore);
  await standby.promote();
  if (isSynchronous) await standby.set('synchronous_standby_names', '');
}

async function isListening(port: number): Promise<boolean> {
  const text = await fetch(`http://127.0.0.1:${port}/metrics`).then(
    (response) => response.text(),
    () => '',
  );
  return /^dovetail_feed_listening 1$/m.test(text);
}

interface Moments {
  /** When the primary was lost, and when the standby was promoted. */
  readonly lost: number;
  readonly promoted: number;
  /** How long after that changes were heard again. */
  readonly cached: number;
}

function judge(
  name: string,
  { isSynchronous }: Scene,
  { replies, faults, acknowledged, lost }: LoadReport,
  moments: Moments,
): FailoverRow {
  const counts = new Map<string, number>();
  for (const { outcome } of replies) counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  const longest = Math.max(...replies.map(({ took }) => took));
  const ended = replies.flatMap(({ outcome, began, took, isWrite }) =>
    isWrite && outcome === '200' && began > moments.lost + cutBefore ? [began + took] : [],
  );
  const accepted = Math.max(0, Math.min(...ended) - moments.promoted);
  const complaints = faults.map((text) => `${name}: an answer that is not documented: ${text}`);
  if (isSynchronous && lost > 0) complaints.push(`${name}: ${lost} acknowledged activations are lost`);
  if (!isSynchronous && lost === 0) complaints.push(`${name}: nothing was lost, so that this shows nothing`);
  return {
    complaints,
    cells: [
      name,
      [...counts]
        .sort()
        .map(([outcome, count]) => `${count} × ${outcome}`)
        .join(', '),
      seconds(longest),
      seconds(accepted),
      seconds(moments.cached),
      String(acknowledged),
      String(lost),
    ],
  };
}
