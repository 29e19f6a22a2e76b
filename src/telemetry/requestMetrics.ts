/** Metrics of requests: how many are in flight, how many there were, and how long they took. */

import { Counter, type Histogram, type Registry } from 'prom-client';
import { type Exchange, type Outcome, transports } from '../http/exchange.ts';
import { addGauge, collectBy } from './gauges.ts';

export interface RequestMetrics {
  /** Adds the numbers of exchanges under way. */
  watchRequests(underway: Iterable<Exchange>): void;
  /** Counts an exchange that is over. */
  end(outcome: Outcome): void;
}

/** In seconds. A cached response takes a fraction of a millisecond, and one from the database a few milliseconds. */
const buckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

export function countRequests(registry: Registry): RequestMetrics {
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
    watchRequests: (underway) => describeUnderway(registry, underway),
    end: tallies.add,
  };
}

function describeUnderway(registry: Registry, underway: Iterable<Exchange>): void {
  const count = (kind: (exchange: Exchange) => boolean) => () => [...underway].filter(kind).length;
  addGauge(
    registry,
    'dovetail_requests_in_flight',
    'Requests under way',
    count((exchange) => !isLasting(exchange)),
  );
  addGauge(registry, 'dovetail_subscriptions', 'Subscriptions open', count(isSubscription));
  addGauge(registry, 'dovetail_connections', 'WebSockets open', count(isConnection));
}

interface RequestLabels {
  readonly endpoint: string;
  readonly operation: string;
}

/** How many requests fell into each bucket of the histogram. The last count is of those that took longer than all buckets. */
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

/** Counts outcomes by their labels, of which there are few combinations. prom-client sees them only when metrics are read. */
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

/** A histogram of the durations. One of prom-client's own would look up the labels for each request. */
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
    help: 'From the head of a request to the last byte of its response; subscriptions and WebSockets are not among them',
    type: 'histogram',
    aggregator: 'sum',
  };
  const metric = { ...histogram, get: async () => ({ ...histogram, values: [...all()].flatMap(valuesOf) }) };
  // The registry uses nothing else of a metric.
  registry.registerMetric(metric as unknown as Histogram);
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
