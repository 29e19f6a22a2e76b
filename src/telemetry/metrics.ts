/** Metrics for Prometheus, on a port of their own. Loaded only where METRICS_PORT asks for them. */

import cluster from 'node:cluster';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type pg from 'pg';
import {
  AggregatorRegistry,
  Counter,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  type MetricConfiguration,
  Registry,
} from 'prom-client';
import type { Config } from '../config.ts';
import type { ChangeFeed } from '../database/changeFeed.ts';
import type { Exchange, Outcome } from '../http/exchange.ts';
import { listen } from '../http/listen.ts';
import type { ResponseCache } from '../http/responseCache.ts';
import { release } from '../version.ts';

export interface Metrics {
  begin(exchange: Exchange): void;
  end(outcome: Outcome): void;
  /** All of them, as Prometheus reads them. */
  print(): Promise<string>;
}

export interface MetricsOptions {
  readonly pool: pg.Pool;
  readonly responseCache: ResponseCache;
  readonly feed: ChangeFeed;
}

/** In seconds: a cached response takes a fraction of a millisecond, one out of the database a few. */
const buckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

/**
 * Counts what passes through this process. No label takes what a client wrote, so that the series stay as few as
 * there are routes, root fields and pages.
 */
export function createMetrics({ pool, responseCache, feed }: MetricsOptions): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const underway = new Set<Exchange>();

  const requests = new Counter({
    name: 'dovetail_requests_total',
    help: 'Requests that are over, by endpoint, operation and status; those of unknown paths, anonymous clients and invalid documents have no operation',
    labelNames: ['endpoint', 'operation', 'status'] as const,
    registers,
  });
  const durations = new Histogram({
    name: 'dovetail_request_duration_seconds',
    help: 'From the head of a request to the last byte of its response; subscriptions are not among them',
    labelNames: ['endpoint', 'operation'] as const,
    buckets,
    registers,
  });

  /** A gauge whose values are looked up when somebody asks. */
  const gauge = (
    name: string,
    help: string,
    value: () => number,
    aggregator: NonNullable<MetricConfiguration<string>['aggregator']> = 'sum',
  ) =>
    new Gauge({ name, help, registers, aggregator, collect: collectBy((self: Gauge) => self.set(value())) });

  const subscriptions = () => [...underway].filter(isSubscription).length;
  gauge('dovetail_requests_in_flight', 'Requests under way', () => underway.size - subscriptions());
  gauge('dovetail_subscriptions', 'Subscriptions open', subscriptions);
  gauge('dovetail_database_connections', 'Connections in the pool', () => pool.totalCount);
  gauge('dovetail_database_connections_idle', 'Connections in the pool that are free', () => pool.idleCount);
  gauge('dovetail_database_waiting', 'Queries that wait for a connection', () => pool.waitingCount);
  new Counter({
    name: 'dovetail_response_cache_reads_total',
    help: 'Reads with a cached response (hit) or without (miss); of the misses, those that shared a computation, and those not cached since something changed meanwhile (overtaken)',
    labelNames: ['result'] as const,
    registers,
    collect: collectBy((self: Counter<'result'>) => {
      const { hits, misses, shared, overtaken } = responseCache.counters;
      self.reset();
      for (const [result, count] of Object.entries({ hit: hits, miss: misses, shared, overtaken }))
        self.inc({ result }, count);
    }),
  });
  gauge('dovetail_response_cache_entries', 'Responses in the cache', () => responseCache.usage().entries);
  gauge(
    'dovetail_response_cache_bytes',
    'What the cached responses take, in bytes',
    () => responseCache.usage().bytes,
  );
  gauge(
    'dovetail_feed_listening',
    'Whether the gateway hears its own announcements (1); while it does not, nothing is cached',
    () => Number(feed.listening),
    'min',
  );
  new Counter({
    name: 'dovetail_feed_reconnects_total',
    help: 'How often announcements were lost and heard again',
    registers,
    collect: collectBy((self: Counter) => {
      self.reset();
      self.inc(feed.reconnects);
    }),
  });
  new Gauge({
    name: 'dovetail_build_info',
    help: 'What runs here',
    labelNames: ['version', 'node'],
    registers,
    aggregator: 'first',
  }).set({ version: release, node: process.version }, 1);
  collectDefaultMetrics({ register: registry });

  // The process that started this one asks for them.
  if (cluster.isWorker) {
    AggregatorRegistry.setRegistries(registry);
    new AggregatorRegistry();
  }

  /** What counts a kind of outcome, made when the first of them comes: there are few. */
  const tallies = new Map<string, (seconds: number) => void>();
  function tallyOf({ exchange, status: given }: Outcome): (seconds: number) => void {
    const { endpoint, operation = '' } = exchange;
    const status = given === undefined ? 'left' : String(given);
    const key = `${endpoint} ${status} ${operation}`;
    const known = tallies.get(key);
    if (known) return known;
    const count = requests.labels(endpoint, operation, status);
    const duration = isSubscription(exchange) ? undefined : durations.labels(endpoint, operation);
    const tally = (seconds: number) => {
      count.inc();
      duration?.observe(seconds);
    };
    tallies.set(key, tally);
    return tally;
  }

  return {
    begin: (exchange) => underway.add(exchange),
    end(outcome) {
      underway.delete(outcome.exchange);
      tallyOf(outcome)(outcome.duration / 1000);
    },
    print: () => registry.metrics(),
  };
}

/** prom-client hands a metric to its `collect` as `this`. */
function collectBy<Self>(collect: (self: Self) => void) {
  return function (this: Self) {
    collect(this);
  };
}

function isSubscription({ operation }: Exchange): boolean {
  return operation?.startsWith('subscription ') ?? false;
}

export interface MetricsServer {
  /** Where they are, such as `http://127.0.0.1:9464/metrics`. */
  readonly url: string;
  close(): Promise<void>;
}

/**
 * Serves metrics at `/metrics`. They have no token and show how busy the gateway is: hence a port of their own, which
 * is for the network of whoever runs it.
 * @param print gives those of this process; without it, those of all workers together.
 * @throws {SetupError} when the port cannot be listened on.
 */
export async function serveMetrics(
  config: Pick<Config, 'HOST' | 'PORT' | 'METRICS_PORT'>,
  print?: () => Promise<string>,
): Promise<MetricsServer> {
  const read = print ?? createAggregate();
  const server = createServer((request, response) => {
    if (request.url?.split('?', 1)[0] !== '/metrics') {
      response.writeHead(404, { 'Content-Type': 'text/plain' }).end('Nothing is here. Try /metrics.\n');
      return;
    }
    read().then(
      (text) => response.writeHead(200, { 'Content-Type': Registry.PROMETHEUS_CONTENT_TYPE }).end(text),
      // A worker that dies while it is asked says nothing.
      () => response.writeHead(503).end(),
    );
  });
  const origin = await listen(server, config, 'METRICS_PORT');
  return {
    url: `${origin}/metrics`,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function createAggregate(): () => Promise<string> {
  const aggregator = new AggregatorRegistry();
  return () => aggregator.clusterMetrics();
}
