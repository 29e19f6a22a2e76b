/**
 * Mirrors an account of 20,000 sessions with 5 segments each from a gateway, twice, into a
 * PostgreSQL server and into the embedded engine. Says how fast that is, and how much memory the command took.
 */

import { execFile, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { startPostgres } from '../support/postgres.ts';

const sessions = Number(process.argv[2] ?? 20_000);
const program = resolve('bin/dovetail.js');

/** Prints the most memory that the process ever had, in kilobytes, when it ends. */
const printPeak = `data:text/javascript,process.on('exit',()=>process.stderr.write('peak '+process.resourceUsage().maxRSS))`;

const account = `
  INSERT INTO "User" (username, "subscriptionTier", "dttTotalSessions") VALUES ('bench', 'ultra', ${sessions});
  INSERT INTO "DttDevice" ("bubbleId", "ownerId", "macAddress", "lastVisited")
    SELECT 'dtt-' || i, 1, '02:00:00:00:00:0' || i, now() FROM generate_series(1, 3) AS i;
  INSERT INTO "DttTemplate" ("bubbleId", "ownerId", name, "targetDepth", "targetWindow")
    SELECT 'template-' || i, 1, 'Template ' || i, 50, 10 FROM generate_series(1, 10) AS i;
  INSERT INTO "DttTemplateSegment" ("templateId", position, type, duration)
    SELECT t, p, 'training', 60 FROM generate_series(1, 10) AS t, generate_series(0, 2) AS p;
  INSERT INTO "DttSession" ("bubbleId", "ownerId", name, passed, "createdAt", "trainerId", "templateId")
    SELECT 'session-' || i, 1, 'Session ' || i, i % 3 > 0, timestamptz '2026-01-01' + i * interval '1 hour', 1 + i % 3, 1 + i % 10
    FROM generate_series(1, ${sessions}) AS i;
  INSERT INTO "TrainerSegment" ("sessionId", type, passed, "percentGrade", points, "durationMeasured", "durationTarget",
      "repsMeasured", "repsTarget", "speedMeasured", "speedTarget", "targetDepth", "targetWindow", "longestDeepthroat",
      "strokeLength", "distanceTravelled", "order")
    SELECT s, 'repetition', true, 91.5, 120, 58, 60, 19, 20, 1.25, 1.2, 50, 10, 1500, 62.5, 3.75, o
    FROM generate_series(1, ${sessions}) AS s, generate_series(0, 4) AS o;
  ANALYZE;`;

const folder = await mkdtemp(join(tmpdir(), 'dovetail-bench-'));
const postgres = await startPostgres({ fsync: 'on' });
try {
  const urlOf = (name: string) => `${postgres.url}/${name}`;
  await postgres.createDatabase('source');
  await postgres.createDatabase('target');
  const gateway = await serve(urlOf('source'));
  try {
    const client = new pg.Client({ connectionString: urlOf('source') });
    await client.connect();
    await client.query(account);
    await client.end();
    const created = await promisify(execFile)(
      process.execPath,
      [program, 'token', 'create', '--user', 'bench', '--name', 'bench'],
      { env: { ...process.env, DATABASE_URL: urlOf('source') } },
    );
    const upstream = { UPSTREAM_URL: `${gateway.url}/api/v1`, UPSTREAM_TOKEN: created.stdout.trim() };
    const targets = [
      ['into PostgreSQL', { DATABASE_URL: urlOf('target') }],
      ['into the embedded engine', { DATABASE_URL: '', DATA_DIR: join(folder, 'embedded') }],
    ] as const;
    for (const [name, target] of targets) {
      for (const run of ['first run', 'second run'])
        await measure(`${name}, ${run}`, { ...upstream, ...target });
    }
  } finally {
    gateway.stop();
  }
} finally {
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
}

async function serve(databaseUrl: string): Promise<{ url: string; stop(): void }> {
  const child = spawn(process.execPath, [program, 'serve'], {
    env: { ...process.env, DATABASE_URL: databaseUrl, PORT: '0', UPSTREAM_URL: '', UPSTREAM_TOKEN: '' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  for await (const chunk of child.stdout) {
    output += chunk;
    const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(output) ?? [];
    if (url !== undefined) return { url, stop: () => child.kill() };
  }
  throw new Error(`the gateway did not start: ${output}`);
}

async function measure(name: string, env: Record<string, string>): Promise<void> {
  const start = performance.now();
  const { stderr } = await promisify(execFile)(process.execPath, ['--import', printPeak, program, 'sync'], {
    env: { ...process.env, ...env },
  });
  const seconds = (performance.now() - start) / 1000;
  const requests = Number(/with (\d+) requests/.exec(stderr)?.[1]);
  const megabytes = Number(/peak (\d+)/.exec(stderr)?.[1]) / 1024;
  process.stdout.write(
    `${name}: ${requests} requests in ${seconds.toFixed(1)} s, ${Math.round(requests / seconds)} a second, ` +
      `peak memory ${Math.round(megabytes)} MB\n`,
  );
}
