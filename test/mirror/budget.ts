/**
 * How an account of 2,000 sessions is read at 60 requests a minute: how long it takes to the first response, to all lists and to
 * all details. Then, with a gateway in between and without: what four clients that poll and one that uses GraphQL cost, and how
 * long they wait.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { type Client, createClient } from '../clientPrograms/client.ts';
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
    /** For how many minutes the clients poll. */
    polls: { type: 'string', default: '10' },
  },
});
const pollers = 4;
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

/** A client that notes how long it waits for each response, in milliseconds. */
const timed = (client: Client, times: number[]): Client => ({
  ...client,
  async get(path) {
    const start = performance.now();
    const response = await client.get(path);
    times.push(performance.now() - start);
    return response;
  },
});

async function poll(base: string, minutes: number) {
  const end = AbortSignal.timeout(minutes * 60_000);
  const clients = tokens.map((token) => createClient(base, token));
  const times: number[] = [];
  await Promise.all(
    clients.map(async (client, index) => {
      // The clients start at different times.
      await sleep((index * 60_000) / pollers, undefined, { signal: end }).catch(() => {});
      await createHomeAutomation(timed(client, times)).run(60_000, end);
    }),
  );
  const failed = clients.flatMap(({ transcript }) => transcript).filter(({ status }) => status !== 200);
  return { failed: failed.length, longest: Math.max(...times) };
}

/** Uses GraphQL a few times a minute, as a fifth client. */
async function useGraphql(url: string, minutes: number): Promise<void> {
  const end = Date.now() + minutes * 60_000;
  while (Date.now() < end) {
    await firstResponse(url);
    await sleep(Math.min(20_000, Math.max(end - Date.now(), 0)));
  }
}

async function comparePolls(gateway: MeasuredGateway, through: StandIn): Promise<void> {
  const direct = await open();
  try {
    through.forgetRequests();
    const minutes = Number(values.polls);
    const [ours, theirs] = await Promise.all([
      poll(`${gateway.url}/api/v1`, minutes),
      poll(direct.base, minutes),
      useGraphql(gateway.url, minutes),
    ]);
    process.stdout.write(`\n${pollers} clients poll for ${minutes} minutes:\n\n`);
    head(['', 'requests to the service', 'of them 429', 'responses that were not 200', 'longest wait, s']);
    for (const [what, service, { failed, longest }] of [
      ['through the gateway', through, ours],
      ['directly', direct, theirs],
    ] as const)
      row([what, service.count(), service.count({ status: 429 }), failed, seconds(longest)]);
    if (through.count({ status: 429 }) + ours.failed > 0 || ours.longest > 1_000) process.exitCode = 1;
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
