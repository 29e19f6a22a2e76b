/**
 * Metrics of a gateway for Prometheus: of its requests, its database, load shedding, response cache, standbys, mirror and
 * change feed. Loaded only where METRICS_PORT asks for them. No label has what a client wrote: there are only as many series
 * as there are routes, root fields and pages. Any library with counters and histograms may replace prom-client.
 */

import cluster from 'node:cluster';
import type pg from 'pg';
import { AggregatorRegistry, Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { ChangeFeed } from '../database/feed/changeFeed.ts';
import type { Replicas } from '../database/replicas/replicas.ts';
import type { Turns } from '../database/turns.ts';
import { type Exchange, type Outcome, transports } from '../http/exchange.ts';
import type { ResponseCache } from '../http/responseCache.ts';
import { release } from '../version.ts';

export interface Metrics {
  /** Adds the numbers of exchanges under way. */
  watchRequests(underway: Iterable<Exchange>): void;
  /** Adds the metrics of load shedding. */
  watchLoad(figures: Turns['figures']): void;
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
  describeDatabase(gauge, pool);
  describeResponseCache(gauge, counter, responseCache);
  describeFeed(gauge, counter, feed);
  if (replicas) describeReplicas(gauge, counter, replicas.figures);
  if (mirror) describeMirror(gauge, counter, mirror.figures);
  describeProcess(registry);
  return {
    ...countRequests(registry),
    watchRequests: (underway) => describeUnderway(gauge, underway),
    watchLoad: (figures) => describeLoad(gauge, counter, figures),
    print: () => registry.metrics(),
  };
}

/** In seconds. A cached response takes a fraction of a millisecond, and one from the database a few milliseconds. */
const buckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

function countRequests(registry: Registry): Pick<Metrics, 'end'> {
  const requests = new Counter({
    name: 'dovetail_requests_total',
    help: 'Requests that are over, by endpoint, operation and status; those of unknown paths, anonymous clients and invalid documents have no operation',
    labelNames: ['endpoint', 'operation', 'status'],
    registers: [registry],
  });
  const durations = new Histogram({
    name: 'dovetail_request_duration_seconds',
    help: 'From the head of a request to the last byte of its response; subscriptions and WebSockets are not among them',
    labelNames: ['endpoint', 'operation'],
    buckets,
    registers: [registry],
  });
  return {
    end({ exchange, status = 'left', duration }) {
      const { endpoint, operation = '' } = exchange;
      requests.inc({ endpoint, operation, status });
      if (!isLasting(exchange)) durations.observe({ endpoint, operation }, duration / 1000);
    },
  };
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

function describeUnderway(gauge: Add, underway: Iterable<Exchange>): void {
  const count = (isCounted: (exchange: Exchange) => boolean) => [...underway].filter(isCounted).length;
  gauge('requests_in_flight', 'Requests under way', () => count((exchange) => !isLasting(exchange)));
  gauge('subscriptions', 'Subscriptions open', () => count(isSubscription));
  gauge('connections', 'WebSockets open', () => count(isConnection));
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

function describeDatabase(gauge: Add, pool: pg.Pool): void {
  gauge('database_connections', 'Connections in the pool', () => pool.totalCount);
  gauge('database_connections_idle', 'Connections in the pool that are free', () => pool.idleCount);
  gauge('database_waiting', 'Queries that wait for a connection', () => pool.waitingCount);
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
