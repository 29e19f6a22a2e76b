/**
 * 1,000 accounts of 100 records each, which get a request now and then, by REST or GraphQL: refreshes must keep up with the
 * accounts that get requests by GraphQL, and memory must be level once all accounts have been seen.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { startPostgres } from '../support/postgres.ts';
import { createStandIn } from '../support/standIn/standIn.ts';
import { head, row, seconds, startGateway } from './measured.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    accounts: { type: 'string', default: '1000' },
    rate: { type: 'string', default: '60' },
    /** The average number of minutes between two requests for an account. */
    every: { type: 'string', default: '30' },
    /** The minutes in which all accounts are seen for the first time; by default the whole duration. */
    arrival: { type: 'string' },
  },
});
const duration = Number(values.minutes) * 60_000;
const arrival = Number(values.arrival ?? values.minutes) * 60_000;
const every = Number(values.every) * 60_000;
const interval = 30_000;
const recent = 10 * 60_000;

/** A hundred records. */
const size = {
  dttDevices: 2,
  templates: 10,
  imports: 2,
  sessions: 68,
  lkbxDevices: 2,
  lockTemplates: 5,
  lockSessions: 10,
  ossmDevices: 1,
};
const accounts = Array.from({ length: Number(values.accounts) }, (_, index) => ({
  id: index + 1,
  username: `account-${index + 1}`,
  tokens: [`token-of-${index + 1}`],
  size,
}));

const query =
  '{ viewer { username } dttSessions(first: 10) { nodes { name passed } } activeDttTemplate { name } }';
/** When the last request by GraphQL for each account was sent. */
const lastRequests = new Map<number, number>();
const responses = new Map<string, number>();
const times: number[] = [];

async function sendRequest(url: string, id: number, token: string): Promise<void> {
  const start = performance.now();
  const inGraphql = Math.random() < 0.5;
  if (inGraphql) lastRequests.set(id, Date.now());
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  const outcome = await (inGraphql
    ? fetch(`${url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) })
    : fetch(`${url}/api/v1/dtt/sessions?limit=10`, { headers })
  ).then(
    async (response) => {
      await response.arrayBuffer();
      return `${inGraphql ? 'GraphQL' : 'REST'} ${response.status}`;
    },
    (error: unknown) => String(error),
  );
  times.push(performance.now() - start);
  responses.set(outcome, (responses.get(outcome) ?? 0) + 1);
}

async function sendRequests(url: string, id: number, token: string, end: number): Promise<void> {
  await sleep(Math.random() * Math.min(arrival, duration));
  while (Date.now() < end) {
    await sendRequest(url, id, token);
    await sleep(Math.max(0, Math.min(-Math.log(1 - Math.random()) * every, end - Date.now())));
  }
}

const postgres = await startPostgres();
await postgres.createDatabase('many');
const standIn = await createStandIn({ rate: Number(values.rate), accounts });
const gateway = await startGateway({
  settings: {
    // Log lines would break up the table.
    LOG_LEVEL: 'error',
    DATABASE_URL: `${postgres.url}/many`,
    UPSTREAM_URL: standIn.base,
    UPSTREAM_RATE: values.rate,
  },
});
const database = new pg.Client({ connectionString: `${postgres.url}/many` });

async function sample(start: number, before: { refreshes: number; requests: number }) {
  const now = Date.now();
  const ids = [...lastRequests].filter(([, time]) => now - time < recent).map(([id]) => id);
  const { rows } = await database.query<{ oldest: number; pending: number }>(
    `SELECT coalesce(extract(epoch FROM max(now() - "refreshedAt")), 0)::float AS oldest,
       (SELECT count(*) FROM "DttSession" WHERE "detailsPending")::int AS pending
     FROM "MirroredAccount" WHERE "userId" = ANY($1)`,
    [ids],
  );
  const [{ oldest, pending } = { oldest: 0, pending: 0 }] = rows;
  // Each run through the lists requests this one once.
  const refreshes = standIn.count({ path: '/ossm' });
  const requests = standIn.count();
  const { heap, rss } = await gateway.memory();
  const sorted = times.splice(0).sort((one, other) => one - other);
  row([
    seconds(now - start),
    lastRequests.size,
    ids.length,
    (refreshes - before.refreshes) * (60_000 / interval),
    Math.round(oldest),
    pending,
    Math.round(rss),
    heap.toFixed(1),
    (requests - before.requests) * (60_000 / interval),
    standIn.count({ status: 429 }),
    Math.round(sorted[Math.floor(sorted.length * 0.99)] ?? 0),
  ]);
  return { refreshes, requests };
}

try {
  await database.connect();
  const start = Date.now();
  const end = start + duration;
  const clients = accounts.map(({ id, tokens: [token = ''] }) => sendRequests(gateway.url, id, token, end));
  head([
    'seconds',
    'accounts of GraphQL',
    'of them in 10 min',
    'refreshes a minute',
    'oldest of these, s',
    'details to read',
    'rss, MB',
    'heap, MB',
    'requests a minute',
    '429s',
    'p99, ms',
  ]);
  let before = { refreshes: 0, requests: 0 };
  for (let next = start + interval; next <= end; next += interval) {
    await sleep(Math.max(0, next - Date.now()));
    before = await sample(start, before);
  }
  await Promise.all(clients);
  const outcomes = [...responses].sort().map(([what, count]) => `${count} × ${what}`);
  process.stdout.write(`\n${outcomes.join(', ')}\n`);
} finally {
  await database.end();
  await gateway.stop();
  await standIn.stop();
  await postgres.stop();
}
