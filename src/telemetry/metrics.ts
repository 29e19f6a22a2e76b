/** Metrics for Prometheus. Loaded only where METRICS_PORT asks for them. */

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
import type { Exchange, Outcome } from '../http/exchange.ts';
import type { LoadShedder } from '../http/loadShedding.ts';
import type { ResponseCache } from '../http/responseCache.ts';
import { release } from '../version.ts';
import { addGauge, collectBy } from './gauges.ts';

export interface Metrics {
  /** Shows also what load shedding does. */
  watchLoad(figures: LoadShedder['figures']): void;
  begin(exchange: Exchange): void;
  end(outcome: Outcome): void;
  /** Counts a request that got a 503 before anything was made of it. */
  turnedAway(endpoint: Exchange['endpoint']): void;
  /** All of them, as Prometheus reads them. */
  print(): Promise<string>;
}

export interface MetricsOptions {
  readonly pool: pg.Pool;
  readonly responseCache: ResponseCache;
  readonly feed: ChangeFeed;
  /** For a database that has standbys to read from. */
  readonly replicas?: Pick<Replicas, 'figures'> | undefined;
  /** For a database that mirrors accounts. */
  readonly mirror?:
    | {
        figures(): { readonly accounts: number; readonly skipped: number; readonly requests: number };
      }
    | undefined;
}

/** In seconds: a cached response takes a fraction of a millisecond, one out of the database a few. */
const buckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

/**
 * Counts what passes through this process. No label takes what a client wrote, so that the series stay as few as
 * there are routes, root fields and pages.
 */
export function createMetrics({ pool, responseCache, feed, mirror, replicas }: MetricsOptions): Metrics {
  const registry = new Registry();
  const requests = countRequests(registry);
  describeDatabase(registry, pool);
  describeResponseCache(registry, responseCache);
  describeFeed(registry, feed);
  if (replicas) describeReplicas(registry, replicas.figures);
  if (mirror) describeMirror(registry, mirror.figures);
  describeProcess(registry);
  return {
    ...requests,
    watchLoad: (figures) => describeLoad(registry, figures),
    print: () => registry.metrics(),
  };
}

function countRequests(registry: Registry): Pick<Metrics, 'begin' | 'end' | 'turnedAway'> {
  const underway = new Set<Exchange>();
  const count = (kind: (exchange: Exchange) => boolean) => () => [...underway].filter(kind).length;
  addGauge(
    registry,
    'dovetail_requests_in_flight',
    'Requests under way',
    count((exchange) => !isLasting(exchange)),
  );
  addGauge(registry, 'dovetail_subscriptions', 'Subscriptions open', count(isSubscription));
  addGauge(
    registry,
    'dovetail_connections',
    'WebSockets and event streams of many operations open',
    count(isConnection),
  );
  const tallies = createTallies();
  new Counter({
    name: 'dovetail_requests_total',
    help: 'Requests that are over, by endpoint, operation and status; those of unknown paths, anonymous clients and invalid documents have no operation',
    labelNames: ['endpoint', 'operation', 'status'] as const,
    registers: [registry],
    collect: collectBy((self: Counter<'endpoint' | 'operation' | 'status'>) => {
      self.reset();
      for (const { labels, status, count } of tallies.all()) self.inc({ ...labels, status }, count);
    }),
  });
  registerDurations(registry, () => tallies.durations());

  return {
    begin: (exchange) => underway.add(exchange),
    end(outcome) {
      underway.delete(outcome.exchange);
      tallies.add(outcome);
    },
    turnedAway: tallies.addTurnedAway,
  };
}

interface RequestLabels {
  readonly endpoint: string;
  readonly operation: string;
}

/** How long requests took, by the bucket that a histogram has them in. The last is for those that are in none. */
interface Durations {
  readonly labels: RequestLabels;
  readonly counts: number[];
  sum: number;
}

interface Tally {
  readonly labels: RequestLabels;
  readonly status: string;
  readonly durations: Durations | undefined;
  count: number;
}

/** Counts outcomes by what kind they are of: there are few. What prom-client makes of labels, it makes when it is asked. */
function createTallies() {
  const tallies = new Map<string, Tally>();
  const durations = new Map<string, Durations>();

  function tallyOf({ exchange, status: given }: Outcome): Tally {
    const { endpoint, operation = '' } = exchange;
    const key = `${endpoint} ${given} ${operation}`;
    const known = tallies.get(key);
    if (known) return known;
    const labels = { endpoint, operation };
    const status = given === undefined ? 'left' : String(given);
    const made = {
      labels,
      status,
      count: 0,
      durations: isLasting(exchange) ? undefined : durationsOf(labels),
    };
    tallies.set(key, made);
    return made;
  }

  function durationsOf(labels: RequestLabels): Durations {
    const key = `${labels.endpoint} ${labels.operation}`;
    const found = durations.get(key) ?? { labels, counts: new Array(buckets.length + 1).fill(0), sum: 0 };
    durations.set(key, found);
    return found;
  }

  return {
    all: () => tallies.values(),
    /** Not among the durations: how fast the others are would not be seen any more. */
    addTurnedAway(endpoint: string): void {
      const key = `${endpoint} at once`;
      const tally = tallies.get(key) ?? {
        labels: { endpoint, operation: '' },
        status: '503',
        count: 0,
        durations: undefined,
      };
      tally.count++;
      tallies.set(key, tally);
    },
    durations: () => durations.values(),
    add(outcome: Outcome): void {
      const tally = tallyOf(outcome);
      tally.count++;
      if (!tally.durations) return;
      const { counts } = tally.durations;
      const seconds = outcome.duration / 1000;
      let bucket = 0;
      for (const bound of buckets) {
        if (seconds <= bound) break;
        bucket++;
      }
      counts[bucket] = (counts[bucket] ?? 0) + 1;
      tally.durations.sum += seconds;
    },
  };
}

/** A histogram of what was counted. Those of prom-client take one value at a time, and look up its labels for each. */
function registerDurations(registry: Registry, all: () => Iterable<Durations>): void {
  const name = 'dovetail_request_duration_seconds';
  const valuesOf = ({ labels, counts, sum }: Durations) => {
    let count = 0;
    const within = [...buckets, '+Inf'].map((le, index) => {
      count += counts[index] ?? 0;
      return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: count };
    });
    return [
      ...within,
      { metricName: `${name}_sum`, labels, value: sum },
      { metricName: `${name}_count`, labels, value: count },
    ];
  };
  const histogram = {
    name,
    help: 'From the head of a request to the last byte of its response; subscriptions, WebSockets and event streams are not among them',
    type: 'histogram',
    aggregator: 'sum',
  };
  const metric = { ...histogram, get: async () => ({ ...histogram, values: [...all()].flatMap(valuesOf) }) };
  // As much of a metric as a registry uses.
  registry.registerMetric(metric as unknown as Histogram);
}

function describeDatabase(registry: Registry, pool: pg.Pool): void {
  addGauge(registry, 'dovetail_database_connections', 'Connections in the pool', () => pool.totalCount);
  addGauge(
    registry,
    'dovetail_database_connections_idle',
    'Connections in the pool that are free',
    () => pool.idleCount,
  );
  addGauge(
    registry,
    'dovetail_database_waiting',
    'Queries that wait for a connection',
    () => pool.waitingCount,
  );
}

function describeLoad(registry: Registry, figures: LoadShedder['figures']): void {
  addGauge(
    registry,
    'dovetail_database_limit',
    'Statements that the database is given at once; more belong to requests under way',
    () => figures.limit,
  );
  addGauge(
    registry,
    'dovetail_requests_waiting',
    'Requests that wait for their turn at the database',
    () => figures.waiting,
  );
  new Counter({
    name: 'dovetail_requests_turned_away_total',
    help: 'Requests that got a 503 since too many waited for the database',
    registers: [registry],
    collect: collectBy((self: Counter) => {
      self.reset();
      self.inc(figures.turnedAway);
    }),
  });
}

function describeResponseCache(registry: Registry, { counters, usage }: ResponseCache): void {
  new Counter({
    name: 'dovetail_response_cache_reads_total',
    help: 'Reads with a cached response (hit) or without (miss); of the misses, those that shared a computation, and those not cached since something changed meanwhile (overtaken)',
    labelNames: ['result'] as const,
    registers: [registry],
    collect: collectBy((self: Counter<'result'>) => {
      const { hits, misses, shared, overtaken } = counters;
      self.reset();
      for (const [result, count] of Object.entries({ hit: hits, miss: misses, shared, overtaken }))
        self.inc({ result }, count);
    }),
  });
  addGauge(registry, 'dovetail_response_cache_entries', 'Responses in the cache', () => usage().entries);
  addGauge(
    registry,
    'dovetail_response_cache_bytes',
    'What the cached responses take, in bytes',
    () => usage().bytes,
  );
}

/** Standbys by their addresses, which are those of the settings. */
function describeReplicas(registry: Registry, figures: Replicas['figures']): void {
  new Counter({
    name: 'dovetail_database_reads_total',
    help: 'Statements of requests that read, by the server that they went to: primary, or a standby',
    labelNames: ['server'] as const,
    registers: [registry],
    collect: collectBy((self: Counter<'server'>) => {
      const { primary, standbys } = figures();
      self.reset();
      self.inc({ server: 'primary' }, primary);
      for (const { name, reads } of standbys) self.inc({ server: name }, reads);
    }),
  });
  new Counter({
    name: 'dovetail_standby_retries_total',
    help: 'Statements that failed on a standby, and went to the primary',
    registers: [registry],
    collect: collectBy((self: Counter) => {
      self.reset();
      self.inc(figures().retried);
    }),
  });
  new Gauge({
    name: 'dovetail_standby_up',
    help: 'Whether the standby is read from (1)',
    labelNames: ['server'] as const,
    registers: [registry],
    aggregator: 'min',
    collect: collectBy((self: Gauge<'server'>) => {
      for (const { name, isHealthy } of figures().standbys) self.set({ server: name }, Number(isHealthy));
    }),
  });
}

function describeMirror(registry: Registry, figures: NonNullable<MetricsOptions['mirror']>['figures']): void {
  addGauge(
    registry,
    'dovetail_mirror_accounts',
    'Accounts of the upstream that are looked after',
    () => figures().accounts,
  );
  addGauge(
    registry,
    'dovetail_mirror_records_skipped',
    'Records of these accounts that the upstream has and the mirror leaves out',
    () => figures().skipped,
  );
  new Counter({
    name: 'dovetail_upstream_requests_total',
    help: 'Requests that the upstream got about accounts',
    registers: [registry],
    collect: collectBy((self: Counter) => {
      self.reset();
      self.inc(figures().requests);
    }),
  });
}

function describeFeed(registry: Registry, feed: ChangeFeed): void {
  addGauge(
    registry,
    'dovetail_feed_listening',
    'Whether the gateway hears its own announcements (1); while it does not, nothing is cached',
    () => Number(feed.listening),
    'min',
  );
  addGauge(
    registry,
    'dovetail_feed_logical',
    'Whether announcements come as messages in the log (1) or by NOTIFY (0)',
    () => Number(feed.kind === 'logical'),
    'min',
  );
  new Counter({
    name: 'dovetail_feed_reconnects_total',
    help: 'How often announcements were lost and heard again',
    registers: [registry],
    collect: collectBy((self: Counter) => {
      self.reset();
      self.inc(feed.reconnects);
    }),
  });
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
  // The process that started this one asks for them.
  if (cluster.isWorker) {
    AggregatorRegistry.setRegistries(registry);
    new AggregatorRegistry();
  }
}

/** Whether it takes as long as its client likes. */
function isLasting(exchange: Exchange): boolean {
  return isSubscription(exchange) || isConnection(exchange);
}

function isConnection({ operation }: Exchange): boolean {
  return transports.some((transport) => transport === operation);
}

function isSubscription({ operation }: Exchange): boolean {
  return operation?.startsWith('subscription ') ?? false;
}
