/**
 * Accounts whose texts all have a mark of the owner, and random requests of all of them over both APIs. No response may have the mark of another account, but for imported templates; in the end no token may be
 * in the database, the log, the metrics or the traces, nor, once it is forgotten, in memory.
 */

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { createServer } from '../faults/server.ts';
import { freePort } from '../support/freePort.ts';
import { createStandIn } from '../support/standIn/standIn.ts';
import { has, head, type MeasuredGateway, row, startGateway } from './measured.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    accounts: { type: 'string', default: '50' },
    /** Requests a minute that the upstream allows each account; with few of them most responses would be errors. */
    rate: { type: 'string', default: '6000' },
    clients: { type: 'string', default: '8' },
    'log-level': { type: 'string', default: 'info' },
  },
});
const minutes = Number(values.minutes);

/** How long, in milliseconds, an unused token is remembered, until the next sweep after that, and connections are kept. */
const remembered = 10 * 60_000 + 60_000;

/** The beginning of all tokens of this run, which is found nowhere else. */
const prefix = `tok${randomBytes(8).toString('hex')}`;

interface Owner {
  readonly id: number;
  readonly token: string;
  readonly marker: string;
}

const owners = Array.from({ length: Number(values.accounts) }, (_, index): Owner => {
  const name = String(index + 1).padStart(3, '0');
  return { id: index + 1, token: `${prefix}${randomBytes(16).toString('hex')}`, marker: `mk${name}q` };
});

/** Texts of templates, which the accounts that have imported them see too. */
const ofTemplates =
  /(template-mk\d{3}q-\d+|(Program \d+ of|What|By|Well done,|Changed \d+ by) mk\d{3}q( does)?)/g;

/** The marks of other accounts in a text, but for those of templates. */
function foreignMarks(text: string, { marker }: Owner): string[] {
  const marks = text.replace(ofTemplates, '').match(/mk\d{3}q/g) ?? [];
  return [...new Set(marks)].filter((mark) => mark !== marker);
}

const below = (end: number) => Math.floor(Math.random() * end);
const pick = <Value>(choices: readonly Value[]): Value => {
  const choice = choices[below(choices.length)];
  if (choice === undefined) throw new Error('there is nothing to pick from');
  return choice;
};

/** The id of a record of any account, mostly of another one. */
const anyId = () => 1 + below(owners.length * 12);

interface RequestShape {
  readonly kind: string;
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
}

const query = (text: string): RequestShape => ({
  kind: 'GraphQL',
  method: 'POST',
  path: '/graphql',
  body: { query: text },
});

const get = (path: string): RequestShape => rest('GET', path);

const rest = (method: string, path: string, body?: unknown): RequestShape => ({
  kind: 'REST',
  method,
  path: `/api/v1${path}`,
  ...(body !== undefined && { body }),
});

const lists = [
  '/users',
  '/dtt',
  '/dtt/templates',
  '/dtt/sessions',
  '/lkbx',
  '/lkbx/templates',
  '/lkbx/sessions',
  '/ossm',
];
const single = ['/users/me', '/dtt/templates/active', '/dtt/sessions/latest', '/lkbx/session/current'];
const byId = ['/users', ...lists.slice(1)];

/** Each makes a random request of an account. */
const requests: readonly ((owner: Owner) => RequestShape)[] = [
  () => get(`${pick(lists)}?limit=${1 + below(20)}&offset=${below(5)}`),
  () => get(pick(single)),
  () => get(`${pick(byId)}/${anyId()}`),
  () =>
    query(
      `{ viewer { username profileTitle dttSessions(first: ${1 + below(20)}) { nodes { name bubbleId } } } }`,
    ),
  () =>
    query(
      `{ dttSessions(first: ${1 + below(5)}) { totalCount nodes { name segments { order repsMeasured } trainer { bubbleId } } } }`,
    ),
  () => query('{ dttTemplates { nodes { name description segments { type } } } activeDttTemplate { name } }'),
  () => query('{ devices { nodes { id bubbleId macAddress } } lockSessions { nodes { name publicId } } }'),
  () =>
    query(`{ s: dttSession(databaseId: ${anyId()}) { name } d: dttDevice(databaseId: ${anyId()}) { bubbleId }
    t: dttTemplate(databaseId: ${anyId()}) { name } u: user(databaseId: ${1 + below(owners.length)}) { username } }`),
  () =>
    query(
      `{ node(id: "${Buffer.from(`DttSession:${anyId()}`).toString('base64')}") { id ... on DttSession { name } } }`,
    ),
  ({ id }) =>
    query(`mutation { activateTemplate(template: { databaseId: ${templateOf(id)} }) { template { name } } }`),
  () => rest('GET', `/lkbx/session/current?targetUserId=${1 + below(owners.length)}`),
  ({ id, marker }) =>
    rest('PATCH', `/dtt/templates/${templateOf(id)}`, {
      description: `Changed ${below(1000)} by ${marker}`,
    }),
  () => rest('POST', '/lkbx/session/current', { action: pick(['lock', 'unlock']) }),
];

/** The stand-in gives ids in the order of the accounts, three templates to each. */
const templateOf = (account: number) => 3 * account - below(3);

const counts = new Map<string, number>();
const faults = new Set<string>();

async function sendRequest(url: string, owner: Owner): Promise<void> {
  const { kind, method, path, body } = pick(requests)(owner);
  const response = await fetch(url + path, {
    method,
    headers: {
      Authorization: `Bearer ${owner.token}`,
      ...(below(4) === 0 && { 'Cache-Control': pick(['no-cache', 'max-age=5']) }),
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(60_000),
  });
  const text = await response.text();
  const what = `${kind} ${response.status}`;
  counts.set(what, (counts.get(what) ?? 0) + 1);
  const marks = foreignMarks(text + JSON.stringify([...response.headers]), owner);
  if (marks.length > 0)
    faults.add(`${owner.marker} got ${marks} from ${method} ${path} ${JSON.stringify(body)}: ${text}`);
  if (text.includes(prefix)) faults.add(`a token is in the response to ${method} ${path}`);
  if (response.status >= 500 && response.status !== 503)
    faults.add(`${response.status} from ${method} ${path}: ${text}`);
}

/** A collector that stores the traces which it receives. */
async function collectTraces() {
  const chunks: Buffer[] = [];
  const collector = createHttpServer(async (request, response) => {
    for await (const chunk of request) chunks.push(chunk);
    response.writeHead(200, { 'Content-Type': 'application/json' }).end('{}');
  });
  await once(collector.listen(0, '127.0.0.1'), 'listening');
  const { port } = collector.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    has: (text: string) => Buffer.concat(chunks).includes(text),
    size: () => chunks.reduce((sum, { length }) => sum + length, 0),
    close: () => collector.close(),
  };
}

/** Whether any row of any table contains a text. */
async function hasInTables(admin: pg.ClientConfig, text: string): Promise<boolean> {
  const client = new pg.Client(admin);
  await client.connect();
  try {
    // Otherwise these statements would write the text into the server's log.
    await client.query(`SET log_statement = 'none'`);
    const { rows } = await client.query<{ name: string }>(
      `SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'`,
    );
    for (const { name } of rows) {
      const found = await client.query(
        `SELECT 1 FROM "${name}" t WHERE position($1 IN t::text) > 0 LIMIT 1`,
        [text],
      );
      if (found.rowCount !== 0) return true;
    }
    await client.query('CHECKPOINT');
    return false;
  } finally {
    await client.end();
  }
}

/** The files below a folder that contain a text. */
async function filesWith(folder: string, text: string): Promise<string[]> {
  const names = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = names.filter((name) => name.isFile()).map((name) => join(name.parentPath, name.name));
  const found: string[] = [];
  for (const file of files) if (await has(file, text).catch(() => false)) found.push(file);
  return found;
}

async function load(gateway: MeasuredGateway): Promise<void> {
  const end = Date.now() + minutes * 60_000;
  await Promise.all(
    Array.from({ length: Number(values.clients) }, async () => {
      while (Date.now() < end && faults.size < 20) await sendRequest(gateway.url, pick(owners));
    }),
  );
}

const folder = await mkdtemp(join(tmpdir(), 'dovetail-isolation-'));
await chmod(folder, 0o755);
const log = join(folder, 'gateway.log');
const data = join(folder, 'postgres');
const server = await createServer(data, {
  fsync: 'off',
  // So that a token that was sent to the database, even for a comparison, is found in the server's log.
  logging_collector: 'on',
  log_directory: 'log',
  log_statement: minutes > 3 ? 'mod' : 'all',
});
const standIn = await createStandIn({
  rate: Number(values.rate),
  accounts: owners.map(({ id, token, marker }) => ({ id, username: marker, marker, tokens: [token] })),
});
const traces = await collectTraces();
const gateway = await startGateway({
  log,
  settings: {
    DATABASE_URL: server.url,
    UPSTREAM_URL: standIn.base,
    UPSTREAM_RATE: values.rate,
    UPSTREAM_INTERVAL: '15',
    LOG_LEVEL: values['log-level'],
    METRICS_PORT: String(await freePort()),
    OTEL_EXPORTER_OTLP_ENDPOINT: traces.url,
  },
});
/** For each place, whether a token was found there, and whether one has to be. */
const places: [place: string, found: boolean, expected: boolean][] = [];
try {
  await load(gateway);
  const inUse = join(folder, 'in-use.heapsnapshot');
  await gateway.snapshot(inUse);
  places.push(['heap while tokens are in use', await has(inUse, prefix), true]);
  const metrics = await fetch(gateway.metricsUrl ?? '').then((response) => response.text());
  places.push([`metrics, ${metrics.length} bytes`, metrics.includes(prefix), false]);
  await sleep(remembered);
  const after = join(folder, 'after.heapsnapshot');
  await gateway.snapshot(after);
  places.push(['heap after tokens are forgotten', await has(after, prefix), false]);
  places.push(['tables of the database', await hasInTables({ connectionString: server.url }, prefix), false]);
} finally {
  await gateway.stop();
  await standIn.stop();
  traces.close();
}
const inFiles = await filesWith(data, prefix);
await server.stop('fast');
places.push([`files of the database ${inFiles}`, inFiles.length > 0, false]);
places.push([`log, ${(await readFile(log)).length} bytes`, await has(log, prefix), false]);
places.push([`traces, ${traces.size()} bytes`, traces.has(prefix), false]);

head(['requests', 'times']);
for (const [what, times] of [...counts].sort()) row([what, times]);
process.stdout.write('\n');
head(['place', 'a token is there']);
for (const [place, found, expected] of places)
  row([place, `${found ? 'yes' : 'no'}${found === expected ? '' : ' (!)'}`]);
process.stdout.write(
  `\nThe stand-in saw ${standIn.tokensSeen.size} tokens and ${standIn.count()} requests.\n`,
);
for (const fault of faults) process.stdout.write(`${fault}\n`);
const isGood = faults.size === 0 && places.every(([, found, expected]) => found === expected);
process.stdout.write(
  isGood ? '\nNo account was shown a record of another, and no token was left.\n' : `\nSee ${folder}\n`,
);
if (isGood) await rm(folder, { recursive: true, force: true });
else process.exitCode = 1;
