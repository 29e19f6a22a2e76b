/** Metrics for Prometheus. Loaded only where METRICS_PORT asks for them. */

import cluster from 'node:cluster';
import type pg from 'pg';
import { AggregatorRegistry, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { ChangeFeed } from '../database/feed/changeFeed.ts';
import type { Replicas } from '../database/replicas/replicas.ts';
import type { Turns } from '../database/turns.ts';
import type { ResponseCache } from '../http/responseCache.ts';
import { release } from '../version.ts';
import {
  describeDatabase,
  describeFeed,
  describeLoad,
  describeMirror,
  describeReplicas,
  describeResponseCache,
  type MirrorMetrics,
} from './componentMetrics.ts';
import { countRequests, type RequestMetrics } from './requestMetrics.ts';

export interface Metrics extends RequestMetrics {
  /** Adds the metrics of load shedding. */
  watchLoad(figures: Turns['figures']): void;
  /** All metrics, in Prometheus' text format. */
  print(): Promise<string>;
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

/**
 * Creates the metrics of this process. No label has what a client wrote: there are only as many series as there are routes,
 * root fields and pages.
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
