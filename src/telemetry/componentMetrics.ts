/** Metrics of the parts of a gateway: its database, load shedding, response cache, standbys, mirror and change feed. */

import type pg from 'pg';
import { Counter, Gauge, type Registry } from 'prom-client';
import type { ChangeFeed } from '../database/feed/changeFeed.ts';
import type { Replicas } from '../database/replicas/replicas.ts';
import type { Turns } from '../database/turns.ts';
import type { ResponseCache } from '../http/responseCache.ts';
import { addGauge, collectBy } from './gauges.ts';

/** What the metrics of a mirror are read from. */
export interface MirrorMetrics {
  figures(): { readonly accounts: number; readonly skipped: number; readonly requests: number };
}

export function describeDatabase(registry: Registry, pool: pg.Pool): void {
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

export function describeLoad(registry: Registry, figures: Turns['figures']): void {
  addGauge(
    registry,
    'dovetail_requests_waiting',
    'Requests with statements that wait for their turn at the database',
    () => figures.waiting,
  );
  new Counter({
    name: 'dovetail_requests_turned_away_total',
    help: 'Requests that got a 503 since too many waited for the database',
    registers: [registry],
    collect: collectBy((self: Counter) => {
      self.reset();
      self.inc(figures.rejected);
    }),
  });
}

export function describeResponseCache(registry: Registry, { counters, usage }: ResponseCache): void {
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

/** Labels standbys with their addresses, as the settings have them. */
export function describeReplicas(registry: Registry, figures: Replicas['figures']): void {
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

export function describeMirror(registry: Registry, figures: MirrorMetrics['figures']): void {
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

export function describeFeed(registry: Registry, feed: ChangeFeed): void {
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
