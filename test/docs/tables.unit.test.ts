/** The tables of the documentation have the same content as the code. */

import pg from 'pg';
import { expect, it } from 'vitest';
import { createTurns } from '../../src/database/turns.ts';
import { createViewerVersions } from '../../src/database/viewerVersions.ts';
import { statusOf } from '../../src/errors.ts';
import { createMetrics } from '../../src/extensions/metrics/metrics.ts';
import { metricsOf as metricsOfStandbys } from '../../src/extensions/standbys/replicas.ts';
import { metricsOf as metricsOfMirror } from '../../src/extensions/upstream/hooks.ts';
import { createResponseCache } from '../../src/http/responseCache.ts';
import { routes } from '../../src/rest/routes.ts';
import { createFakeFeed } from '../support/feed.ts';
import { settings } from '../support/settings.ts';
import { readPage, rowsOf } from './markdown.ts';

it('docs/configuration.md lists each setting once, with its description and default', () => {
  const expected = Object.entries(settings).map(([name, { description, takes, schema }]) => {
    const { data } = schema.safeParse(undefined);
    return `| \`${name}\` | ${description} | ${takes} | ${data === undefined ? '' : `\`${data}\``} |`;
  });
  const rows = rowsOf(readPage('docs/configuration.md'), /^[A-Z_]+$/).map(({ row }) => row);
  expect(rows.toSorted()).toEqual(expected.toSorted());
});

it('docs/rest.md lists the routes in the order of the operations', () => {
  const expected = routes.map(
    ({ method, path, missing = '', description }) =>
      `| \`${method} ${path}\` | ${description} | ${missing} |`,
  );
  const rows = rowsOf(readPage('docs/rest.md'), /^(GET|POST) \//).map(({ row }) => row);
  expect(rows).toEqual(expected);
});

it('docs/errors.md lists each error code with its status, and has a section with an example for it', () => {
  const page = readPage('docs/errors.md');
  const rows = rowsOf(page, /^[A-Z_]+$/).map(({ key, row }) => [key, Number(row.split('|')[2])]);
  expect(rows).toEqual(Object.entries(statusOf));
  for (const code of Object.keys(statusOf))
    expect(page).toMatch(new RegExp(`\\n## ${code}\\n[^#]*\`\`\`sh\\n`));
});

it('docs/operations.md lists the metrics with their types and descriptions', async () => {
  const { feed } = createFakeFeed();
  const pool = new pg.Pool();
  const responseCache = createResponseCache(createViewerVersions(feed), { maxBytes: 0, maxAge: 1 });
  const mirror = { figures: () => ({ accounts: 2, skipped: 3, requests: 5 }) };
  const standby = { name: 'standby1:5432', isHealthy: true, status: 'well', reads: 11, connections: 1 };
  const replicas = () => ({ primary: 6, retried: 4, standbys: [standby] });
  const turns = createTurns(1, 1);
  const others = [...metricsOfMirror(mirror), ...metricsOfStandbys(replicas)];
  const metrics = createMetrics({ pool, responseCache, feed, turns, metrics: others });
  const text = await metrics.print();
  for (const line of [
    'dovetail_mirror_accounts 2',
    'dovetail_mirror_records_skipped 3',
    'dovetail_upstream_requests_total 5',
    'dovetail_database_reads_total{server="primary"} 6',
    'dovetail_database_reads_total{server="standby1:5432"} 11',
    'dovetail_standby_up{server="standby1:5432"} 1',
    'dovetail_standby_retries_total 4',
  ])
    expect(text).toContain(`\n${line}\n`);
  await pool.end();
  const expected = [...text.matchAll(/^# HELP (dovetail_\w+) (.*)\n# TYPE \w+ (\w+)$/gm)].map(
    ([, name, help, kind]) => ({ name, kind, help }),
  );
  const rows = rowsOf(readPage('docs/operations.md'), /^dovetail_/).map(({ row }) => {
    const [, name, kind, , help] = row.split('|').map((cell) => cell.trim());
    return { name: name?.slice(1, -1), kind, help };
  });
  expect(new Set(rows)).toEqual(new Set(expected));
  expect(rows.length).toBe(expected.length);
});
