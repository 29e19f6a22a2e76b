import pg from 'pg';
import { expect, it } from 'vitest';
import { createTurns } from '../../../src/database/turns.ts';
import { createMetrics } from '../../../src/extensions/metrics/metrics.ts';
import { createResponseCache } from '../../../src/http/responseCache.ts';
import { metricsIn } from '../../docs/markdown.ts';
import { createFakeFeed } from '../../support/feed.ts';

it('docs/operations.md lists the metrics of the core with their types and descriptions', async () => {
  const { feed } = createFakeFeed();
  const pool = new pg.Pool();
  const responseCache = createResponseCache(feed, { maxBytes: 0, maxAge: 1 });
  const metrics = createMetrics({ pool, responseCache, feed, turns: createTurns(1, 1), metrics: [] });
  const text = await metrics.print();
  await pool.end();
  const expected = [...text.matchAll(/^# HELP (dovetail_\w+) (.*)\n# TYPE \w+ (\w+)$/gm)].map(
    ([, name, help, kind]) => ({ name, kind, help }),
  );
  const rows = metricsIn('docs/operations.md');
  expect(new Set(rows)).toEqual(new Set(expected));
  expect(rows.length).toBe(expected.length);
});
