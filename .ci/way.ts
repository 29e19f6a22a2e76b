/**
 * Prints which files of `src` a request passes through, in a gateway without extensions over a new database of DATABASE_URL or of the
 * embedded engine: those that run a function between the request and the end of its response.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { tmpdir } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { createToken } from '../src/auth/tokens.ts';
import { readConfig } from '../src/config/config.ts';
import type { Extension } from '../src/extensionPoints.ts';
import { extensions } from '../src/extensions/extensions.ts';
import { openGateway } from '../src/server/gateway.ts';

// The list is the array that the core reads.
(extensions as Extension[]).length = 0;
const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true });

const DATA_DIR = mkdtempSync(`${tmpdir()}/dovetail-way-`);
const gateway = await openGateway(readConfig({ ...process.env, DATA_DIR, PORT: '0' }));
const { pool } = gateway.database;
await pool.query(`INSERT INTO "User" (username, "subscriptionTier") VALUES ('way', 'ultra')`);
const { token } = await createToken(pool, 'way', 'way');

/** Sends a request. @returns the files of which a function has run. */
async function filesOf(path: string, body?: object): Promise<string[]> {
  // What the request before has begun is over by then.
  await sleep(300);
  await session.post('Profiler.takePreciseCoverage');
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  const method = body ? 'POST' : 'GET';
  const response = await fetch(`${gateway.url}${path}`, { method, headers, body: JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok || text.includes('"errors"')) throw new Error(text);
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const run = result.filter(({ functions }) =>
    functions.some(({ ranges }) => ranges.some((each) => each.count)),
  );
  return run.flatMap(({ url }) => /\/(src\/.*\.ts)/.exec(url)?.[1] ?? []).sort();
}

const query = 'query ($first: Int) { dttSessions(first: $first) { nodes { databaseId name } } }';
const post = (first: number) => ['/graphql', { query, variables: { first } }] as const;
const get = (limit: number) => [`/api/v1/dtt/sessions?limit=${limit}`] as const;
await filesOf('/graphql', { query: '{ viewer { username } }' });
const sizes = { new: 10, 'other arguments': 11, cached: 11, 'once more': 11 };
for (const request of [post, get])
  for (const [what, size] of Object.entries(sizes)) {
    const files = await filesOf(...request(size));
    process.stdout.write(`\n${files.length}  ${request.name}, ${what}\n    ${files.join('\n    ')}\n`);
  }
await gateway.close();
rmSync(DATA_DIR, { recursive: true });
