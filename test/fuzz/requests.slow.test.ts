/**
 * Random requests of two accounts, many at a time. No response may be an internal error of the gateway, each must be
 * well-formed, none may contain data of the other account, and the process must release its memory afterwards.
 *
 * The suite sends some thousands; `npm run fuzz -- --minutes 10` runs longer, and `SEED=…` repeats a run.
 */

import { rm } from 'node:fs/promises';
import { Agent, request as send } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { afterAll, expect, inject, it } from 'vitest';
import { openDatabase } from '../../src/database/database.ts';
import { type ErrorCode, statusOf } from '../../src/errors.ts';
import { isRecord, parseJson } from '../../src/http/json.ts';
import { type Account, createAccount } from '../support/accounts.ts';
import {
  copyTemplate,
  graphqlOnce,
  openTestDatabase,
  type TestDatabase,
  withClient,
} from '../support/gateway.ts';
import { endProcesses, startSourceScript, written } from '../support/processes.ts';
import { drawDocument } from './documents.ts';
import { drawRequest, type FuzzRequest, namesOf } from './requests.ts';

const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31);
const minutes = Number(process.env.FUZZ_MINUTES ?? 0);
const inFlight = 16;
const minRequests = 3_000;

/** How many connections to the database the gateway has at most, beside those of its change feed. */
const databaseConnections = 10;

const aliceMarks: Marks = { word: 'alice-7q', firstId: 600_001, lastId: 600_999 };
const bobMarks: Marks = { word: 'bob-7q', firstId: 700_001, lastId: 700_999 };

/** A gateway in a process of its own. For each line of input it collects garbage and prints how much memory it uses. */
const script = `
  import { setFlagsFromString } from 'node:v8';
  import { runInNewContext } from 'node:vm';
  const source = ${JSON.stringify(new URL('../../src/', import.meta.url).href)};
  const { readConfig } = await import(source + 'config/config.ts');
  const { extensions } = await import(source + 'extensions/extensions.ts');
  const { openGateway } = await import(source + 'server/gateway.ts');
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  const gateway = await openGateway(readConfig(JSON.parse(process.argv[1]), extensions));
  console.log('listening ' + gateway.url);
  for await (const _ of process.stdin) {
    collect();
    const sockets = process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
    console.log('usage ' + JSON.stringify({ heap: process.memoryUsage().heapUsed, sockets }));
  }`;

let cleanUp: (() => Promise<void>) | undefined;
const agent = new Agent({ keepAlive: true, maxSockets: inFlight });

const { settings, accounts } = await openAccounts();
const gateway = startSourceScript(
  script,
  JSON.stringify({
    ...settings,
    PORT: '0',
    LOG_LEVEL: 'error',
    // Small, so that the cache is full and does not grow any more when the memory is measured.
    RESPONSE_CACHE_MB: '4',
    RATE_LIMIT: '0',
    RATE_LIMIT_ANONYMOUS: '0',
    DATABASE_CONNECTIONS: String(databaseConnections),
  }),
);
const url = /listening (\S+)/.exec(await written(gateway, /listening \S+\n/))?.[1] ?? '';
// GraphiQL is a page of several megabytes, which stays in memory after its first request.
await (await fetch(`${url}/graphql`, { headers: { Accept: 'text/html' } })).text();
// So does Prisma's client, with the first request that reads tokens.
await graphqlOnce({ url }, accounts.alice.token, '{ viewer { apiTokens { name } } }');
const names = await namesOf(url, [accounts.alice, accounts.bob]);
afterAll(async () => {
  agent.destroy();
  await endProcesses();
  await cleanUp?.();
});

/** Creates the accounts in a new database. @returns them, and the settings with which a gateway opens it. */
async function openAccounts() {
  if (inject('engine').kind === 'postgres') {
    const database = await openTestDatabase();
    cleanUp = database.close;
    const settings = { DATABASE_URL: String(database.pool.options.connectionString) };
    return { settings, accounts: await createAccounts(database) };
  }
  // Only one process at a time may open the folder.
  const folder = await copyTemplate();
  cleanUp = () => rm(folder, { recursive: true, force: true });
  const database = withClient(await openDatabase({ DATABASE_URL: undefined, DATA_DIR: folder }));
  const accounts = await createAccounts(database).finally(database.close);
  return { settings: { DATA_DIR: folder }, accounts };
}

async function createAccounts(database: TestDatabase) {
  return { alice: await openAccount(database, aliceMarks), bob: await openAccount(database, bobMarks) };
}

/** Creates an account with all ids in the range of these marks. */
async function openAccount(database: TestDatabase, { word, firstId }: Marks): Promise<Account> {
  const { rows } = await database.pool.query<{ name: string }>(
    `SELECT quote_ident(sequencename) AS name FROM pg_sequences WHERE schemaname = 'public'`,
  );
  for (const { name } of rows) await database.pool.query(`ALTER SEQUENCE ${name} RESTART ${firstId}`);
  return createAccount(database.client, word);
}

function sendRequest({ viewer, method, target, headers, body }: FuzzRequest): Promise<FuzzResponse> {
  const authorization = viewer === 'nobody' ? {} : { authorization: `Bearer ${accounts[viewer].token}` };
  // For some methods Node does not add Content-Length by itself.
  const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const outgoing = send({
      host: hostname,
      port,
      // Unchanged, where a URL would normalize it.
      path: target,
      method,
      headers: { ...headers, ...authorization, ...length },
      agent,
      timeout: 10_000,
    });
    outgoing.on('timeout', () => outgoing.destroy(new Error('there was no response in time')));
    outgoing.on('error', reject);
    outgoing.on('response', (response) => {
      let text = '';
      const { statusCode: status = 0, headers } = response;
      const isFollowed = target.startsWith('/api') && /event-stream/.test(headers['content-type'] ?? '');
      response.setEncoding('utf8').on('data', (data) => {
        text += data;
        const event = isFollowed && /^data: (.*)\n/m.exec(text)?.[1];
        if (!event) return;
        // The first event of a followed route is the response that others get.
        resolve({ status, headers: { ...headers, 'content-type': 'application/json' }, body: event });
        outgoing.destroy();
      });
      response.on('error', reject);
      response.on('end', () => resolve({ status, headers, body: text }));
    });
    outgoing.end(body);
  });
}

let sent = 0;

/** Sends the request and checks each response. @throws if one is wrong. */
async function check(request: FuzzRequest): Promise<void> {
  const others = { alice: [bobMarks], bob: [aliceMarks], nobody: [aliceMarks, bobMarks] }[request.viewer];
  for (let time = 1; time <= request.times; time++) {
    const response = await sendRequest(request);
    sent++;
    const fault = findFault(request, response, others);
    if (fault !== undefined)
      throw new Error(
        `${fault}, in response ${time}:\n${response.body.slice(0, 2_000)}\n${gateway.output.stderr.slice(-3_000)}`,
      );
  }
}

/** The memory and sockets that the gateway uses when it is idle. */
async function readIdleUsage(): Promise<{ heap: number; sockets: number }> {
  agent.destroy();
  // The gateway releases closed connections a moment later.
  await sleep(200);
  gateway.output.stdout = '';
  gateway.child.stdin.write('usage\n');
  return JSON.parse(/usage (.*)/.exec(await written(gateway, /usage .*\n/))?.[1] ?? '');
}

/** Sends random requests until both the time and the number of requests are reached. */
async function fuzz(from: number, until: { requests: number; time: number }): Promise<void> {
  const request = fc
    .uint8Array({ maxLength: 250, size: 'max' })
    .map((numbers) => drawRequest(numbers, names, drawDocument));
  const property = fc.asyncProperty(request, check);
  for (let next = from; sent < until.requests || performance.now() < until.time; next += inFlight) {
    const seeds = Array.from({ length: inFlight }, (_, index) => next + index);
    // In milliseconds: how long fast-check shrinks a failing case.
    const options = { numRuns: 50, interruptAfterTimeLimit: 20_000 };
    await Promise.all(seeds.map((each) => fc.assert(property, { ...options, seed: each })));
  }
}

it(`responds to random requests without internal errors or data of other accounts (SEED=${seed})`, {
  timeout: minutes * 60_000 + 120_000,
}, async () => {
  const began = performance.now();
  await fuzz(seed, { requests: (2 * minRequests) / 3, time: began + minutes * 30_000 });
  const before = await readIdleUsage();
  await fuzz(seed + 1_000_000, { requests: minRequests, time: began + minutes * 60_000 });
  const after = await readIdleUsage();
  const seconds = Math.round((performance.now() - began) / 1_000);
  process.stdout.write(
    `fuzz: ${sent} requests in ${seconds} s; idle heap ${Math.round(before.heap / 2 ** 20)} and ${Math.round(after.heap / 2 ** 20)} MiB\n`,
  );
  expect(gateway.output.stderr).toBe('');
  // The pool may have opened more of its connections to the database since. On a busy machine, closed ones are released later.
  const sockets = async () => (await readIdleUsage()).sockets;
  await expect.poll(sockets).toBeLessThanOrEqual(before.sockets + databaseConnections);
  expect(after.heap - before.heap).toBeLessThan(16 * 2 ** 20);
});

interface FuzzResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** How the data of an account is recognized: by a word in each of its texts, and by the range of its ids. */
interface Marks {
  readonly word: string;
  readonly firstId: number;
  readonly lastId: number;
}

/** The first thing that is wrong with the response, if anything is. */
function findFault(
  request: FuzzRequest,
  response: FuzzResponse,
  others: readonly Marks[],
): string | undefined {
  const { status, headers, body } = response;
  if (!expectedStatuses.has(status)) return `the status is ${status}`;
  const text = `${JSON.stringify(headers)}${body}`;
  const word = others.find((other) => text.includes(other.word))?.word;
  if (word !== undefined) return `it says ${word}`;
  if (status === 304 || request.method === 'HEAD') return body === '' ? undefined : 'it has a body';
  const type = String(headers['content-type']);
  if (!/^application\/(graphql-response\+)?json/.test(type))
    return body.includes('INTERNAL_SERVER_ERROR') ? `it is ${body}` : undefined;
  const content = parseJson(body);
  if (!isRecord(content)) return 'it is no object';
  return request.target.startsWith('/graphql')
    ? faultOfGraphql(content, others)
    : faultOfRest(status, content, others);
}

const expectedStatuses = new Set([200, 304, 400, 401, 403, 404, 405, 406, 408, 413, 415]);

type Content = Readonly<Record<string, unknown>>;

function faultOfRest(status: number, { ok, data, error }: Content, others: readonly Marks[]) {
  if (ok !== (status === 200)) return `ok is ${ok}`;
  if (!ok) return typeof error === 'string' ? undefined : 'it has no error';
  // A list also echoes limit and offset of the request, which may be any number.
  return findForeign(isRecord(data) && 'pagination' in data ? data.data : data, others);
}

function faultOfGraphql({ data, errors = [] }: Content, others: readonly Marks[]): string | undefined {
  if (!Array.isArray(errors)) return 'the errors are no list';
  for (const error of errors) {
    const code: unknown = error?.extensions?.code;
    if (typeof code !== 'string' || !codes.has(code)) return `an error has the code ${code}`;
  }
  return findForeign(data, others);
}

const forbiddenCodes: readonly ErrorCode[] = [
  'INTERNAL_SERVER_ERROR',
  'BAD_GATEWAY',
  'TOO_MANY_REQUESTS',
  'PERSISTED_QUERY_NOT_SUPPORTED',
];
const codes = new Set(
  Object.keys(statusOf).filter((code) => !forbiddenCodes.some((other) => other === code)),
);

/** Finds an id of another account anywhere in the data: as a number, or within a global id or a cursor. */
function findForeign(data: unknown, others: readonly Marks[]): string | undefined {
  if (typeof data === 'number')
    return others.some(({ firstId, lastId }) => data >= firstId && data <= lastId)
      ? `it has ${data}`
      : undefined;
  if (typeof data === 'string') {
    if (!/^[\w-]{8,}$/.test(data)) return undefined;
    const numbers = Buffer.from(data, 'base64url').toString('latin1').match(/\d{6}/g) ?? [];
    return numbers.map((number) => findForeign(Number(number), others)).find((fault) => fault !== undefined);
  }
  if (typeof data !== 'object' || data === null) return undefined;
  for (const value of Object.values(data)) {
    const fault = findForeign(value, others);
    if (fault !== undefined) return fault;
  }
  return undefined;
}
