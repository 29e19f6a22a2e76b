/**
 * `npm run mirror:budget`: how an account of 2,000 sessions is read at 60 requests a minute: how long it takes to the first
 * response, to all lists and to all details; then, how many requests three clients cost that poll, with a gateway
 * in between and without.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { createClient } from '../clientPrograms/client.ts';
import { createHomeAutomation } from '../clientPrograms/homeAutomation.ts';
import { startPostgres } from '../support/postgres.ts';
import { createStandIn, type StandIn } from '../support/standIn/standIn.ts';
import { head, type MeasuredGateway, row, seconds, startGateway } from './measured.ts';

const { values } = parseArgs({
  options: {
    /** How long reading may take at the most. */
    minutes: { type: 'string', default: '60' },
    sessions: { type: 'string', default: '2000' },
    rate: { type: 'string', default: '60' },
    /** How long the clients poll. */
    polls: { type: 'string', default: '10' },
  },
});
const pollers = 3;
const tokens = Array.from({ length: pollers }, (_, index) => `token-${index}`);

/** Without an OSSM device, for which a client would send further requests, a poll is eleven requests. */
const account = {
  id: 1,
  username: 'budget',
  tokens,
  size: { sessions: Number(values.sessions), segmentsOfSession: 5, ossmDevices: 0, imports: 0 },
};
const open = () => createStandIn({ rate: Number(values.rate), accounts: [account] });

/** Sends a request until there is a response with data. */
async function firstResponse(url: string): Promise<void> {
  for (;;) {
    const response = await fetch(`${url}/graphql`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${tokens[0]}`, 'Content-Type': 'application/json' },
      body: '{"query":"{ viewer { username dttSessions(first: 5) { totalCount nodes { name } } } }"}',
    });
    const text = await response.text();
    if (response.status === 200 && !text.includes('"errors"')) return;
    await sleep(Math.min(Number(response.headers.get('Retry-After') ?? 1), 5) * 1000);
  }
}

const pendingDetails = `SELECT (SELECT count(*) FROM "DttSession" WHERE "detailsPending")
  + (SELECT count(*) FROM "DttTemplate" WHERE "detailsPending") AS count, (SELECT count(*) FROM "DttSession") AS sessions,
  (SELECT count(*) FROM "MirroredAccount" WHERE "refreshedAt" IS NOT NULL) AS complete`;

async function read(gateway: MeasuredGateway, standIn: StandIn, database: pg.Client): Promise<void> {
  const start = Date.now();
  const report = (what: string) =>
    row([what, seconds(Date.now() - start), standIn.count(), standIn.count({ status: 429 })]);
  head(['', 'seconds', 'requests so far', '429s']);
  const first = firstResponse(gateway.url).then(() => report('first GraphQL response'));
  let isComplete = false;
  let nextReport = start + 60_000;
  while (Date.now() < start + Number(values.minutes) * 60_000) {
    const { rows } = await database.query<{ count: string; sessions: string; complete: string }>(
      pendingDetails,
    );
    const [{ count, sessions, complete } = { count: '0', sessions: '0', complete: '0' }] = rows;
    if (!isComplete && complete === '1') {
      isComplete = true;
      report('all lists');
    }
    if (isComplete && count === '0') {
      await first;
      return report('all details');
    }
    if (Date.now() > nextReport) {
      nextReport += 60_000;
      report(`… ${sessions} sessions, ${count} details still to be read`);
      // The account is refreshed only while there are requests for it.
      if (isComplete) await firstResponse(gateway.url);
    }
    await sleep(500);
  }
  report('out of time');
}

async function poll(base: string, minutes: number): Promise<number> {
  const end = AbortSignal.timeout(minutes * 60_000);
  const clients = tokens.map((token) => createClient(base, token));
  await Promise.all(
    clients.map(async (client, index) => {
      // The clients start at different times.
      await sleep(index * 20_000, undefined, { signal: end }).catch(() => {});
      await createHomeAutomation(client).run(60_000, end);
    }),
  );
  return clients.flatMap(({ transcript }) => transcript).filter(({ status }) => status !== 200).length;
}

async function comparePolls(gateway: MeasuredGateway, through: StandIn): Promise<void> {
  const direct = await open();
  try {
    through.forgetRequests();
    const minutes = Number(values.polls);
    const failed = await Promise.all([poll(`${gateway.url}/api/v1`, minutes), poll(direct.base, minutes)]);
    process.stdout.write(`\n${pollers} clients poll for ${minutes} minutes:\n\n`);
    head(['', 'requests to the service', 'of them 429', 'responses that were not 200']);
    row(['through the gateway', through.count(), through.count({ status: 429 }), failed[0] ?? 0]);
    row(['directly', direct.count(), direct.count({ status: 429 }), failed[1] ?? 0]);
  } finally {
    await direct.stop();
  }
}

const postgres = await startPostgres();
await postgres.createDatabase('budget');
const standIn = await open();
const gateway = await startGateway({
  settings: {
    DATABASE_URL: `${postgres.url}/budget`,
    UPSTREAM_URL: standIn.base,
    UPSTREAM_RATE: values.rate,
  },
});
const database = new pg.Client({ connectionString: `${postgres.url}/budget` });
try {
  await database.connect();
  process.stdout.write(`${values.sessions} sessions at ${values.rate} requests a minute:\n\n`);
  await read(gateway, standIn, database);
  if (standIn.count({ status: 429 }) > 0) process.exitCode = 1;
  if (Number(values.polls) > 0) await comparePolls(gateway, standIn);
} finally {
  await database.end();
  await gateway.stop();
  await standIn.stop();
  await postgres.stop();
}
