/**
 * Metrics of a gateway for Prometheus: of its requests, its database, load shedding, response cache, change feed, and
 * whatever other extensions have. Loaded only if METRICS_PORT is set. No label has text of clients: there are only as many series as there are routes,
 * root fields and pages. prom-client may be replaced by any library with counters and histograms.
 */

import cluster from 'node:cluster';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type pg from 'pg';
import { AggregatorRegistry, Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Config } from '../../config/config.ts';
import type { GatewayParts, Hooks, Metric, MetricValues } from '../../extensionPoints.ts';
import { type Exchange, nameOfEndpoint, type Outcome } from '../../http/exchange.ts';
import { listen } from '../../http/port.ts';
import { release } from '../../version.ts';

type Metrics = ReturnType<typeof createMetrics>;

export interface MetricsOptions extends Pick<GatewayParts, 'responseCache' | 'feed' | 'turns'> {
  readonly pool: pg.Pool;
  /** Those of other extensions. */
  readonly metrics: readonly Metric[];
}

export function createMetrics(options: MetricsOptions) {
  const registry = new Registry();
  const add: Add = (name, read, details) => register(registry, { name, help: helps[name], read, ...details });
  describeParts(add, options);
  for (const metric of options.metrics) register(registry, metric);
  describeProcess(registry);
  const underway = followExchanges(add);
  const countRequest = countRequests(registry);
  return {
    /** Must be called with each exchange that begins. */
    began: underway.add,
    /** Counts an exchange that is over. */
    ended(outcome: Outcome): void {
      underway.remove(outcome.exchange);
      countRequest(outcome);
    },
    /** All metrics, in Prometheus' text format. */
    print: () => registry.metrics(),
  } satisfies Hooks & { print(): Promise<string> };
}

/** In seconds. A cached response takes a fraction of a millisecond, and one from the database a few milliseconds. */
const buckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

function countRequests(registry: Registry) {
  const registers = [registry];
  const labelNames = ['endpoint', 'operation'] as const;
  const requests = new Counter({
    name: 'dovetail_requests_total',
    help: 'Requests that are over, by endpoint, operation and status; those of unknown paths, anonymous clients and invalid documents have no operation',
    labelNames: [...labelNames, 'status'],
    registers,
  });
  const durations = new Histogram({
    name: 'dovetail_request_duration_seconds',
    help: 'From the head of a request to the last byte of its response; subscriptions and WebSockets are not among them',
    labelNames,
    buckets,
    registers,
  });
  return ({ exchange, status, duration }: Outcome): void => {
    const { operation = '' } = exchange;
    const endpoint = nameOfEndpoint(exchange.endpoint);
    requests.inc({ endpoint, operation, status: status ?? 'left' });
    if (!isLasting(exchange)) durations.observe({ endpoint, operation }, duration / 1_000);
  };
}

/** The metrics of the core, without `dovetail_`. */
const helps = {
  database_connections: 'Connections in the pool',
  database_connections_idle: 'Connections in the pool that are free',
  database_waiting: 'Queries that wait for a connection',
  response_cache_reads_total:
    'Reads with a cached response (hit) or without (miss); of the misses, those that shared a computation, and those not cached since something changed meanwhile (overtaken)',
  response_cache_entries: 'Responses in the cache',
  response_cache_bytes: 'What the cached responses take, in bytes',
  requests_in_flight: 'Requests under way',
  subscriptions: 'Subscriptions open',
  connections: 'WebSockets open',
  requests_waiting: 'Requests with statements that wait for their turn at the database',
  requests_turned_away_total: 'Requests that got a 503 since too many waited for the database',
  feed_listening: 'Whether the gateway hears its own announcements (1); while it does not, nothing is cached',
  feed_logical: 'Whether announcements come as messages in the log (1) or by NOTIFY (0)',
  feed_reconnects_total: 'How often announcements were lost and heard again',
};

type Add = (
  name: keyof typeof helps,
  read: () => MetricValues,
  details?: Pick<Metric, 'label' | 'aggregator'>,
) => void;

function register(registry: Registry, { name, help, read, label = '', aggregator = 'sum' }: Metric): void {
  const Kind = name.endsWith('_total') ? Counter : Gauge;
  const metric = new Kind({
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
}

function describeParts(add: Add, { pool, responseCache, feed, turns }: MetricsOptions): void {
  add('database_connections', () => pool.totalCount);
  add('database_connections_idle', () => pool.idleCount);
  add('database_waiting', () => pool.waitingCount);
  const { counters, usage } = responseCache;
  const reads = () => {
    const { hits: hit, misses: miss, shared, overtaken } = counters;
    return Object.entries({ hit, miss, shared, overtaken });
  };
  add('response_cache_reads_total', reads, { label: 'result' });
  add('response_cache_entries', () => usage().entries);
  add('response_cache_bytes', () => usage().bytes);
  add('feed_listening', () => Number(feed.listening), { aggregator: 'min' });
  add('feed_logical', () => Number(feed.mode === 'logical'), { aggregator: 'min' });
  add('feed_reconnects_total', () => feed.reconnects);
  add('requests_waiting', () => turns.figures.waiting);
  add('requests_turned_away_total', () => turns.figures.rejected);
}

/**
 * Tracks the exchanges under way, in an array. A `Set` that changes with every request keeps finished ones alive until V8 treats them
 * as old objects. Copying them took a quarter of the processor time of cached responses.
 */
function followExchanges(add: Add) {
  const underway: Exchange[] = [];
  const count = (isCounted: (exchange: Exchange) => boolean) => underway.filter(isCounted).length;
  add('requests_in_flight', () => count((exchange) => !isLasting(exchange)));
  add('subscriptions', () => count(isSubscription));
  add('connections', () => count(isConnection));
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

const isConnection = ({ operation }: Exchange) => operation === 'websocket';

const isSubscription = ({ operation }: Exchange) => operation?.startsWith('subscription ') ?? false;

/** Whether the client decides how long the exchange takes. */
const isLasting = (exchange: Exchange) => isSubscription(exchange) || isConnection(exchange);

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

/**
 * Serves metrics at `/metrics`, and the probes, on a port of their own for the operator's network: they need no token and show how
 * busy the gateway is.
 * @param gateway returns where the gateway listens; undefined until it does.
 * @param print returns the metrics of this process. Without it, those of all workers are served.
 * @throws {SetupError} when the port cannot be listened on.
 */
export async function serveMetrics(
  config: Pick<Config, 'HOST'>,
  port: number,
  gateway: () => string | undefined,
  print?: Metrics['print'],
) {
  const workers = print ? undefined : new AggregatorRegistry();
  const read = print ?? (() => workers?.clusterMetrics());
  const pages = new Map<string | undefined, () => Promise<Page>>([
    ['/metrics', async () => ({ status: 200, text: await read(), type: Registry.PROMETHEUS_CONTENT_TYPE })],
    // Of this process, so that a gateway that takes no more connections does not count as dead.
    ['/healthz', async () => ({ status: 200, text: 'alive\n' })],
    ['/readyz', () => askWhetherReady(gateway())],
  ]);
  const missing = async (): Promise<Page> => ({
    status: 404,
    text: 'Not found. Try /metrics, /healthz or /readyz.\n',
  });
  const server = createServer(async (request, response) => {
    const page = pages.get(request.url?.split('?', 1)[0]) ?? missing;
    // A worker may die before it has responded.
    const { status, text, type = 'text/plain' } = await page().catch((): Page => ({ status: 503, text: '' }));
    response.writeHead(status, { 'Content-Type': type }).end(text);
  });
  const url = await listen(server, config, 'METRICS_PORT', port);
  return {
    lines: [['Metrics', `${url}/metrics`]],
    async close(): Promise<void> {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  } satisfies Hooks;
}

interface Page {
  readonly status: number;
  readonly text: string | undefined;
  readonly type?: string;
}

/** Asks the gateway, or one of its workers. A connection that stayed open would delay its end. */
async function askWhetherReady(gateway: string | undefined): Promise<Page> {
  if (gateway === undefined) return { status: 503, text: 'starting\n' };
  const response = await fetch(`${gateway}/readyz`, { headers: { Connection: 'close' } });
  return { status: response.status, text: await response.text() };
}
