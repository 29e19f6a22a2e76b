/**
 * Metrics of a gateway for Prometheus: of its requests, its database, load shedding, response cache, standbys, mirror and
 * change feed. Loaded only where METRICS_PORT asks for them. No label has what a client wrote: there are only as many series
 * as there are routes, root fields and pages. Any library with counters and histograms may replace prom-client.
 */

import cluster from 'node:cluster';
import type pg from 'pg';
import {
  AggregatorRegistry,
  Counter,
  collectDefaultMetrics,
  Gauge,
  type Histogram,
  Registry,
} from 'prom-client';
import type { ChangeFeed } from '../database/feed/changeFeed.ts';
import type { Replicas } from '../database/replicas/replicas.ts';
import type { Turns } from '../database/turns.ts';
import { type Exchange, type Outcome, transports } from '../http/exchange.ts';
import type { ResponseCache } from '../http/responseCache.ts';
import { release } from '../version.ts';

export interface Metrics {
  /** Adds the metrics of load shedding. */
  watchLoad(figures: Turns['figures']): void;
  /** Must be called with each exchange that begins. */
  begin(exchange: Exchange): void;
  /** Counts an exchange that is over. */
  end(outcome: Outcome): void;
  /** All metrics, in Prometheus' text format. */
  print(): Promise<string>;
}

/** What the metrics of a mirror are read from. */
interface MirrorMetrics {
  figures(): { readonly accounts: number; readonly skipped: number; readonly requests: number };
}

export interface MetricsOptions {
  readonly pool: pg.Pool;
  readonly responseCache: ResponseCache;
  readonly feed: ChangeFeed;
  /** Set where there are standbys to read from. */
  readonly replicas?: Pick<Replicas, 'figures'> | undefined;
  /** Set where the database mirrors accounts. */
  readonly mirror?: MirrorMetrics | undefined;
}

/** Creates the metrics of this process. */
export function createMetrics({ pool, responseCache, feed, mirror, replicas }: MetricsOptions): Metrics {
  const registry = new Registry();
  const [gauge, counter] = [adderTo(registry, Gauge), adderTo(registry, Counter)];
  gauge('database_connections', 'Connections in the pool', () => pool.totalCount);
  gauge('database_connections_idle', 'Connections in the pool that are free', () => pool.idleCount);
  gauge('database_waiting', 'Queries that wait for a connection', () => pool.waitingCount);
  describeResponseCache(gauge, counter, responseCache);
  describeFeed(gauge, counter, feed);
  if (replicas) describeReplicas(gauge, counter, replicas.figures);
  if (mirror) describeMirror(gauge, counter, mirror.figures);
  describeProcess(registry);
  const underway = followExchanges(gauge);
  const requests = countRequests(registry);
  return {
    watchLoad: (figures) => describeLoad(gauge, counter, figures),
    begin: underway.add,
    end(outcome) {
      underway.remove(outcome.exchange);
      requests.count(outcome);
    },
    print: () => registry.metrics(),
  };
}

/** In seconds. A cached response takes a fraction of a millisecond, and one from the database a few milliseconds. */
const bounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

/** What is counted of the requests with the same endpoint and operation. */
interface Series {
  readonly labels: { readonly endpoint: string; readonly operation: string };
  readonly statuses: Map<number | 'left', number>;
  /** How many took at most as long as each bound, and longer than the one before; the last have no bound. */
  readonly durations: number[];
  /** In seconds. */
  sum: number;
}

/** Counts here and not by prom-client, which would take a twentieth of the time of a cached response to hash the labels. */
function countRequests(registry: Registry) {
  const all = new Map<string, Series>();

  function seriesOf({ endpoint, operation = '' }: Exchange): Series {
    const key = `${endpoint} ${operation}`;
    const known = all.get(key);
    if (known) return known;
    const durations = Array(bounds.length + 1).fill(0);
    const series: Series = { labels: { endpoint, operation }, statuses: new Map(), durations, sum: 0 };
    all.set(key, series);
    return series;
  }

  const requests = new Counter({
    name: 'dovetail_requests_total',
    help: 'Requests that are over, by endpoint, operation and status; those of unknown paths, anonymous clients and invalid documents have no operation',
    labelNames: ['endpoint', 'operation', 'status'],
    registers: [registry],
    collect() {
      requests.reset();
      for (const { labels, statuses } of all.values())
        for (const [status, count] of statuses) requests.inc({ ...labels, status }, count);
    },
  });
  const durations = {
    name: 'dovetail_request_duration_seconds',
    help: 'From the head of a request to the last byte of its response; subscriptions and WebSockets are not among them',
    type: 'histogram',
    aggregator: 'sum',
    get: async () => ({ ...durations, values: [...all.values()].flatMap(bucketsOf) }),
  };
  // A registry asks a metric for nothing else.
  registry.registerMetric(durations as unknown as Histogram);
  return {
    count({ exchange, status: given, duration }: Outcome): void {
      const series = seriesOf(exchange);
      const status = given ?? 'left';
      series.statuses.set(status, (series.statuses.get(status) ?? 0) + 1);
      if (isLasting(exchange)) return;
      const seconds = duration / 1_000;
      const found = bounds.findIndex((bound) => seconds <= bound);
      const index = found === -1 ? bounds.length : found;
      series.durations[index] = (series.durations[index] ?? 0) + 1;
      series.sum += seconds;
    },
  };
}

/** The values of a histogram. A bucket counts the smaller ones as well. */
function bucketsOf({ labels, durations, sum }: Series) {
  const name = 'dovetail_request_duration_seconds';
  let count = 0;
  const buckets = durations.map((own, index) => {
    count += own;
    return { labels: { le: bounds[index] ?? '+Inf', ...labels }, value: count, metricName: `${name}_bucket` };
  });
  if (count === 0) return [];
  return [
    ...buckets,
    { labels, value: sum, metricName: `${name}_sum` },
    { labels, value: count, metricName: `${name}_count` },
  ];
}

/** A number, or one for each value of a label. */
type Values = number | Iterable<readonly [label: string, value: number]>;

interface Details {
  readonly label?: string;
  /** What is told of several workers; their sum unless given. */
  readonly aggregator?: 'min' | 'sum';
}

/**
 * Adds a metric whose value is kept elsewhere.
 * @param name what follows `dovetail_`.
 * @param read called when somebody asks for the metrics.
 */
type Add = (name: string, help: string, read: () => Values, details?: Details) => void;

/** What adds gauges to a registry, or counters. */
function adderTo(registry: Registry, Metric: typeof Gauge | typeof Counter): Add {
  return (name, help, read, { label = '', aggregator = 'sum' } = {}) => {
    const metric = new Metric({
      name: `dovetail_${name}`,
      help,
      labelNames: label === '' ? [] : [label],
      registers: [registry],
      aggregator,
      collect() {
        metric.reset();
        const values = read();
        if (typeof values === 'number') metric.inc(values);
        else for (const [key, value] of values) metric.inc({ [label]: key }, value);
      },
    });
  };
}

/**
 * Follows the exchanges under way. They are in no `Set`, since one that changes with every request keeps requests that are over in
 * memory. When V8 gives a `Set` or a `Map` a new table, the former table refers to the new one. If an empty table has become
 * old in a pause, all tables after it outlive the collections of the young generation, together with every request that was in
 * one of them: a quarter of the processor time of cached responses was spent on copying them.
 */
function followExchanges(gauge: Add) {
  const underway: Exchange[] = [];
  const count = (isCounted: (exchange: Exchange) => boolean) => underway.filter(isCounted).length;
  gauge('requests_in_flight', 'Requests under way', () => count((exchange) => !isLasting(exchange)));
  gauge('subscriptions', 'Subscriptions open', () => count(isSubscription));
  gauge('connections', 'WebSockets open', () => count(isConnection));
  return {
    add(exchange: Exchange): void {
      exchange.underwayIndex = underway.push(exchange) - 1;
    },
    remove(exchange: Exchange): void {
      const last = underway.pop();
      if (!last || last === exchange) return;
      last.underwayIndex = exchange.underwayIndex;
      underway[last.underwayIndex] = last;
    },
  };
}

/** Whether the client decides how long the exchange takes. */
function isLasting(exchange: Exchange): boolean {
  return isSubscription(exchange) || isConnection(exchange);
}

function isConnection({ operation }: Exchange): boolean {
  return transports.some((transport) => transport === operation);
}

function isSubscription({ operation }: Exchange): boolean {
  return operation?.startsWith('subscription ') ?? false;
}

function describeLoad(gauge: Add, counter: Add, figures: Turns['figures']): void {
  gauge(
    'requests_waiting',
    'Requests with statements that wait for their turn at the database',
    () => figures.waiting,
  );
  counter(
    'requests_turned_away_total',
    'Requests that got a 503 since too many waited for the database',
    () => figures.rejected,
  );
}

function describeResponseCache(gauge: Add, counter: Add, { counters, usage }: ResponseCache): void {
  counter(
    'response_cache_reads_total',
    'Reads with a cached response (hit) or without (miss); of the misses, those that shared a computation, and those not cached since something changed meanwhile (overtaken)',
    () => [
      ['hit', counters.hits],
      ['miss', counters.misses],
      ['shared', counters.shared],
      ['overtaken', counters.overtaken],
    ],
    { label: 'result' },
  );
  gauge('response_cache_entries', 'Responses in the cache', () => usage().entries);
  gauge('response_cache_bytes', 'What the cached responses take, in bytes', () => usage().bytes);
}

/** Labels standbys with their addresses, as the settings have them. */
function describeReplicas(gauge: Add, counter: Add, figures: Replicas['figures']): void {
  const standbys = () => figures().standbys;
  counter(
    'database_reads_total',
    'Statements of requests that read, by the server that they went to: primary, or a standby',
    () => [['primary', figures().primary], ...standbys().map(({ name, reads }) => [name, reads] as const)],
    { label: 'server' },
  );
  counter(
    'standby_retries_total',
    'Statements that failed on a standby, and went to the primary',
    () => figures().retried,
  );
  gauge(
    'standby_up',
    'Whether the standby is read from (1)',
    () => standbys().map(({ name, isHealthy }) => [name, Number(isHealthy)]),
    { label: 'server', aggregator: 'min' },
  );
}

function describeMirror(gauge: Add, counter: Add, figures: MirrorMetrics['figures']): void {
  gauge('mirror_accounts', 'Accounts of the upstream that are looked after', () => figures().accounts);
  gauge(
    'mirror_records_skipped',
    'Records of these accounts that the upstream has and the mirror leaves out',
    () => figures().skipped,
  );
  counter(
    'upstream_requests_total',
    'Requests that the upstream got about accounts',
    () => figures().requests,
  );
}

function describeFeed(gauge: Add, counter: Add, feed: ChangeFeed): void {
  gauge(
    'feed_listening',
    'Whether the gateway hears its own announcements (1); while it does not, nothing is cached',
    () => Number(feed.listening),
    { aggregator: 'min' },
  );
  gauge(
    'feed_logical',
    'Whether announcements come as messages in the log (1) or by NOTIFY (0)',
    () => Number(feed.kind === 'logical'),
    { aggregator: 'min' },
  );
  counter(
    'feed_reconnects_total',
    'How often announcements were lost and heard again',
    () => feed.reconnects,
  );
}

function describeProcess(registry: Registry): void {
  new Gauge({
    name: 'dovetail_build_info',
    help: 'What runs here',
    labelNames: ['version', 'node'],
    registers: [registry],
    aggregator: 'first',
  }).set({ version: release, node: process.version }, 1);
  collectDefaultMetrics({ register: registry });
  // The process that started this worker asks for its metrics.
  if (cluster.isWorker) {
    AggregatorRegistry.setRegistries(registry);
    new AggregatorRegistry();
  }
}
