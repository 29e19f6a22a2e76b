/**
 * The primary is lost under load, and a standby takes over at its address. Measures what clients see, how soon activations are accepted and
 * responses cached again, and how many acknowledged activations are lost. In the last 300 ms before, nothing reaches the
 * standby, so that only the primary has the activations that are acknowledged meanwhile.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { type Cluster, type Standby, startCluster } from '../support/cluster.ts';
import { freePort } from '../support/freePort.ts';
import { addAccounts } from './accounts.ts';
import { openFaultyProxy } from './faultyProxy.ts';
import { type LoadReport, startLoad } from './load.ts';
import { superviseGateway, until } from './supervised.ts';
import { seconds } from './table.ts';

/** In milliseconds: how long nothing reaches the standby before the primary is lost. */
const cutBefore = 300;
/** In milliseconds: the time from the cut until the standby is promoted. */
const untilPromoted = 1_000;
const longestRecovery = 30_000;

interface Scenario {
  readonly feed: 'notify' | 'logical';
  readonly isSynchronous: boolean;
}

const scenarios: readonly Scenario[] = (['notify', 'logical'] as const).flatMap((feed) =>
  [true, false].map((isSynchronous) => ({ feed, isSynchronous })),
);

export const failoverHead = [
  'feed and standby',
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
  for (const scenario of scenarios) rows.push(await measure(scenario, settings));
  return rows;
}

async function measure(scenario: Scenario, settings: Readonly<Record<string, string>>): Promise<FailoverRow> {
  const name = `${scenario.feed}, ${scenario.isSynchronous ? 'synchronous' : 'asynchronous'}`;
  process.stderr.write(`failover: ${name} …\n`);
  const cluster = await startCluster(1, { fsync: 'on' });
  const [standby] = cluster.standbys;
  if (!standby) throw new Error('there is no standby');
  const { primary } = cluster;
  const proxy = await openFaultyProxy(primary.port);
  const metrics = await freePort();
  const gateway = await superviseGateway({
    ...settings,
    DATABASE_URL: `postgresql://postgres:postgres@127.0.0.1:${proxy.port}/postgres`,
    METRICS_PORT: String(metrics),
    CHANGE_FEED: scenario.feed,
  });
  try {
    await until('the gateway is ready', gateway.isReady);
    const admin = { connectionString: `${primary.url}/postgres` };
    const accounts = await addAccounts(admin, 3);
    await until('the gateway receives changes', () => isListening(metrics));
    await cluster.isReplayed();
    if (scenario.isSynchronous) await primary.set('synchronous_standby_names', standby.name);
    const load = startLoad(gateway.url, accounts);
    await until('all requests succeed before the failover', () => load.succeedsSince(0));
    await sleep(1_000);
    const lost = performance.now();
    await loseAndPromote(cluster, standby, scenario);
    const promoted = performance.now();
    proxy.redirect(standby.port);
    await until('all requests succeed again', () => load.succeedsSince(promoted), longestRecovery);
    await until('the gateway receives changes again', () => isListening(metrics), longestRecovery);
    const cached = performance.now() - promoted;
    await sleep(1_000);
    const report = await load.stop();
    return toRow(name, scenario, report, { lost, promoted, cached });
  } finally {
    await gateway.stop();
    proxy.close();
    await cluster.stop();
  }
}

async function loseAndPromote(
  cluster: Cluster,
  standby: Standby,
  { isSynchronous }: Scenario,
): Promise<void> {
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

interface Times {
  /** The times at which the primary was lost and the standby was promoted. */
  readonly lost: number;
  readonly promoted: number;
  /** How long after the promotion the gateway received changes again. */
  readonly cached: number;
}

/** The row of the table, and what is wrong with the result. */
function toRow(
  name: string,
  { isSynchronous }: Scenario,
  { replies, undocumented, acknowledged, lost }: LoadReport,
  times: Times,
): FailoverRow {
  const counts = new Map<string, number>();
  for (const { outcome } of replies) counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  const longest = Math.max(...replies.map(({ took }) => took));
  const ended = replies.flatMap(({ outcome, began, took, isWrite }) =>
    isWrite && outcome === '200' && began > times.lost + cutBefore ? [began + took] : [],
  );
  const accepted = Math.max(0, Math.min(...ended) - times.promoted);
  const complaints = undocumented.map((text) => `${name}: a response that is not documented: ${text}`);
  if (isSynchronous && lost > 0) complaints.push(`${name}: ${lost} acknowledged activations are lost`);
  if (!isSynchronous && lost === 0)
    complaints.push(`${name}: nothing was lost, so the measurement shows nothing`);
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
      seconds(times.cached),
      String(acknowledged),
      String(lost),
    ],
  };
}
