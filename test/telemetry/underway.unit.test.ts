import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import pg from 'pg';
import { expect, it } from 'vitest';
import { createViewerVersions } from '../../src/database/viewerVersions.ts';
import type { Exchange } from '../../src/http/exchange.ts';
import { createResponseCache } from '../../src/http/responseCache.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { createFakeFeed } from '../support/feed.ts';

it('exchanges that are over do not outlive a collection of the young generation, also after a pause', () => {
  const { feed } = createFakeFeed();
  const responseCache = createResponseCache(createViewerVersions(feed), { maxBytes: 0, maxAge: 1 });
  const metrics = createMetrics({ pool: new pg.Pool(), responseCache, feed });
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  const concurrent: Exchange[] = [];
  function end(exchange: Exchange | undefined): void {
    if (exchange) metrics.end({ exchange, status: 200, duration: 1 });
  }
  function run(count: number): void {
    for (let number = 0; number < count; number++) {
      // The fields that are read, and half a kilobyte.
      const fields = { endpoint: 'rest', underwayIndex: -1, content: new Array(64).fill(number) };
      const exchange = fields as unknown as Exchange;
      metrics.begin(exchange);
      concurrent.push(exchange);
      if (concurrent.length > 32) end(concurrent.shift());
    }
    for (const exchange of concurrent.splice(0)) end(exchange);
  }
  const oldBytes = () =>
    getHeapSpaceStatistics().find(({ space_name: name }) => name === 'old_space')?.space_used_size ??
    Number.NaN;
  run(1_000);
  collect();
  const before = oldBytes();
  run(100_000);
  expect(oldBytes() - before).toBeLessThan(5_000_000);
});
