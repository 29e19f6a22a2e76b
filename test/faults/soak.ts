/**
 * `npm run soak -- --minutes 10`: a mixed load for the given time: reads by both APIs, activations, subscriptions, requests
 * that clients abort, and tokens that are created and revoked. Memory, file descriptors and connections must not grow, and
 * must be released at the end.
 */

import { createHash, randomBytes } from 'node:crypto';
import { chmod, mkdtemp, readdir, readFile, readlink, rm } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { addAccounts, type LoadAccount } from './accounts.ts';
import { findUndocumented, type Request, sendRequest } from './requests.ts';
import { createServer, type Server } from './server.ts';
import { reportHeap, type SupervisedGateway, superviseGateway, until } from './supervised.ts';

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '10' } } });
const minutes = Number(values.minutes);

/** In milliseconds: the time between two samples. */
const interval = 5_000;

/** A measurement: memory in MiB, and numbers of open resources. */
interface Sample {
  readonly rss: number;
  readonly heap: number;
  readonly descriptors: number;
  readonly sockets: number;
  readonly connections: number;
}

/** How much higher the median of the last third may be than that of the middle third. */
const margins: Sample = { rss: 15, heap: 3, descriptors: 8, sockets: 8, connections: 1 };
const names = Object.keys(margins) as (keyof Sample)[];

const counts = new Map<string, number>();
const problems = new Set<string>();
let stopping = false;

function count(what: string): void {
  counts.set(what, (counts.get(what) ?? 0) + 1);
}

const pick = <T>(items: readonly T[]): T => {
  const item = items[Math.floor(Math.random() * items.length)];
  if (item === undefined) throw new Error('there is nothing to pick from');
  return item;
};
const upTo = (most: number) => Math.floor(Math.random() * most);

/** Some hundreds of different operations, such as several versions of frontends send. */
function drawQuery(): string {
  return pick([
    `{ viewer { username } dttTemplates(first: ${1 + upTo(50)}) { nodes { name isActive } } }`,
    `{ dttSessions(first: ${1 + upTo(20)}, offset: ${upTo(10)}) { totalCount nodes { name segments { type points } } } }`,
    `{ devices { nodes { id macAddress } } activeDttTemplate { name segments { type } } }`,
    `{ a: missing${upTo(20)} }`,
  ]);
}

function drawRead(account: LoadAccount): Request {
  const { token, sessions, templates } = account;
  if (Math.random() < 0.4)
    return { method: 'POST', path: '/graphql', token, body: JSON.stringify({ query: drawQuery() }) };
  const path = pick([
    `/dtt/sessions/${pick(sessions)}`,
    `/dtt/sessions?limit=${1 + upTo(20)}&offset=${upTo(20)}`,
    `/dtt/templates/${pick(templates)}`,
    '/dtt/templates/active',
    '/users/me',
    '/lkbx/sessions',
    '/dtt/sessions/x',
  ]);
  return { method: 'GET', path: `/api/v1${path}`, token };
}

type Loop = (
  url: string,
  agent: Agent,
  accounts: readonly LoadAccount[],
  database: pg.Client,
) => Promise<void>;

async function send(url: string, agent: Agent, request: Request, what: string): Promise<string> {
  const reply = await sendRequest(url, agent, request);
  count(`${what} ${reply.outcome}`);
  if (!/^(200|40\d)/.test(reply.outcome))
    problems.add(`${what}: ${reply.outcome}: ${findUndocumented(request, reply)}`);
  return reply.outcome;
}

const read: Loop = async (url, agent, accounts) => {
  await send(url, agent, drawRead(pick(accounts)), 'read');
};

const activate: Loop = async (url, agent, accounts) => {
  const { token, templates } = pick(accounts);
  const path = `/api/v1/dtt/templates/${pick(templates)}`;
  await send(url, agent, { method: 'POST', path, token, body: '{"isActive":true}' }, 'activation');
  await sleep(20);
};

const subscribe: Loop = async (url, agent, accounts) => {
  const { token } = pick(accounts);
  const outgoing = request(`${url}/graphql`, {
    method: 'POST',
    agent,
    headers: {
      Authorization: `Bearer ${token}`,
      'Content-Type': 'application/json',
      Accept: 'text/event-stream',
    },
  });
  outgoing.on('error', () => {});
  outgoing.on('response', (response) => {
    count('subscription');
    response.on('error', () => {}).on('data', () => count('event'));
  });
  outgoing.end('{"query":"subscription { activeDttTemplate { name } }"}');
  await sleep(200 + upTo(2_000));
  outgoing.destroy();
};

const abort: Loop = async (url, agent, accounts) => {
  const { method, path, token, body } = drawRead(pick(accounts));
  const outgoing = request(`${url}${path}`, {
    method,
    agent,
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
  });
  outgoing.on('error', () => {}).on('response', (response) => response.on('error', () => {}).resume());
  // Some clients close the connection before they have sent the whole request.
  if (Math.random() < 0.5) outgoing.end(body);
  else outgoing.flushHeaders();
  await sleep(upTo(10));
  outgoing.destroy();
  count('aborted');
  await sleep(50);
};

const revoke: Loop = async (url, agent, accounts, database) => {
  const token = `dvt_${randomBytes(32).toString('base64url')}`;
  const digest = createHash('sha256').update(token).digest();
  await database.query(`INSERT INTO "ApiToken" ("userId", name, digest, slot) VALUES ($1, 'soak', $2, 1)`, [
    pick(accounts).userId,
    digest,
  ]);
  const request: Request = { method: 'GET', path: '/api/v1/users/me', token };
  if ((await send(url, agent, request, 'new token')) !== '200') problems.add('a new token is rejected');
  await database.query('UPDATE "ApiToken" SET "revokedAt" = now() WHERE digest = $1', [digest]);
  await sleep(200);
  if ((await send(url, agent, request, 'revoked token')) !== '401')
    problems.add('a revoked token is accepted');
  await database.query('DELETE FROM "ApiToken" WHERE digest = $1', [digest]);
};

const loops: readonly Loop[] = [
  ...Array.from({ length: 8 }, () => read),
  ...Array.from({ length: 3 }, () => activate),
  ...Array.from({ length: 10 }, () => subscribe),
  ...Array.from({ length: 2 }, () => abort),
  revoke,
];

async function measure(gateway: SupervisedGateway, database: pg.Client): Promise<Sample> {
  const heap = (await gateway.heap()) / 2 ** 20;
  const process = `/proc/${gateway.pid()}`;
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`${process}/status`, 'utf8')) ?? [];
  const open = await readdir(`${process}/fd`);
  const links = await Promise.all(open.map((name) => readlink(`${process}/fd/${name}`).catch(() => '')));
  const { rows } = await database.query<{ count: number }>(
    `SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name <> 'soak'`,
  );
  return {
    rss: Number(kilobytes) / 1024,
    heap,
    descriptors: open.length,
    sockets: links.filter((link) => link.startsWith('socket:')).length,
    connections: rows[0]?.count ?? 0,
  };
}

function median(numbers: readonly number[]): number {
  return [...numbers].sort((one, other) => one - other)[Math.floor(numbers.length / 2)] ?? 0;
}

const line = (cells: readonly (string | number)[]) => process.stdout.write(`| ${cells.join(' | ')} |\n`);
const cellsOf = (sample: Sample) => names.map((name) => Math.round(sample[name] * 10) / 10);

async function soak(server: Server, gateway: SupervisedGateway): Promise<string[]> {
  await until('the gateway is ready', gateway.isReady);
  const accounts = await addAccounts(server.admin, 20);
  const database = new pg.Client({ ...server.admin, application_name: 'soak' });
  await database.connect();
  const agent = new Agent({ keepAlive: true });
  const idle = await measure(gateway, database);
  line(['', 'RSS, MiB', 'heap, MiB', 'descriptors', 'sockets', 'database connections', 'requests']);
  line(Array.from({ length: 7 }, () => '---'));
  line(['idle before', ...cellsOf(idle), 0]);

  const total = () => [...counts].reduce((sum, [what, times]) => sum + (what === 'event' ? 0 : times), 0);
  const running = loops.map(async (loop) => {
    while (!stopping) {
      await loop(gateway.url, agent, accounts, database);
      await sleep(5);
    }
  });
  const samples: Sample[] = [];
  const end = performance.now() + minutes * 60_000;
  const perMinute = 60_000 / interval;
  let next = performance.now();
  while (next < end) {
    // The interval does not depend on how long a measurement takes.
    next += interval;
    await sleep(next - performance.now());
    samples.push(await measure(gateway, database));
    if (samples.length % perMinute === 0) {
      const last = samples.slice(-perMinute);
      const medians = Object.fromEntries(names.map((name) => [name, median(last.map((each) => each[name]))]));
      // An entry for each name, as a sample has.
      line([`minute ${samples.length / perMinute}`, ...cellsOf(medians as unknown as Sample), total()]);
    }
  }
  stopping = true;
  await Promise.all(running);
  agent.destroy();
  // The pool closes connections that were idle for ten seconds.
  await sleep(12_000);
  const after = await measure(gateway, database);
  line(['idle after', ...cellsOf(after), total()]);
  await database.end();

  const third = Math.floor(samples.length / 3);
  const rises = names.flatMap((name) => {
    const middle = median(samples.slice(third, 2 * third).map((each) => each[name]));
    const last = median(samples.slice(-third).map((each) => each[name]));
    return last > middle + margins[name]
      ? [`${name} rose from ${middle.toFixed(1)} to ${last.toFixed(1)} in the last third`]
      : [];
  });
  const unreleased = (['descriptors', 'sockets', 'connections'] as const).flatMap((name) =>
    after[name] > idle[name] + 1 ? [`${name}: ${idle[name]} before, ${after[name]} after`] : [],
  );
  return [
    ...rises,
    ...unreleased,
    ...problems,
    ...gateway.exits.map(({ lastLine }) => `the gateway exited: ${lastLine}`),
  ];
}

const folder = await mkdtemp(join(tmpdir(), 'dovetail-soak-'));
await chmod(folder, 0o755);
const server = await createServer(join(folder, 'postgres'), ['max_connections = 50', 'fsync = off']);
const gateway = await superviseGateway(
  {
    DATABASE_URL: `postgresql://postgres@127.0.0.1:${server.port}/postgres`,
    LOG_LEVEL: 'warn',
    RESPONSE_CACHE_MB: '16',
  },
  reportHeap,
);
try {
  const complaints = await soak(server, gateway);
  process.stdout.write(
    `\n${[...counts]
      .sort()
      .map(([what, times]) => `${times} × ${what}`)
      .join(', ')}\n`,
  );
  process.stdout.write(
    complaints.length > 0 ? `\n${complaints.join('\n')}\n` : '\nNothing grew, and everything was released.\n',
  );
  if (complaints.length > 0) process.exitCode = 1;
} finally {
  await gateway.stop();
  await server.stop('SIGQUIT');
  await rm(folder, { recursive: true, force: true });
}
