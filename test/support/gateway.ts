/** Gateways for tests: each has a database of its own and a free port, and gets its requests over real HTTP. */

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { beforeEach, expect, inject } from 'vitest';
import { openClient } from '../../src/database/client.ts';
import { closeAll } from '../../src/database/closing.ts';
import { type Database, openDatabase, type PoolLimits } from '../../src/database/database.ts';
import type { ChangeFeed } from '../../src/database/feed/changeFeed.ts';
import type { PrismaClient } from '../../src/database/generated/prisma/client.ts';
import { createTurns } from '../../src/database/turns.ts';
import type { Extension, Hooks } from '../../src/extensionPoints.ts';
import { extensions as all } from '../../src/extensions/extensions.ts';
import { createResponseCache, type ResponseCache } from '../../src/http/responseCache.ts';
import { openExtensions } from '../../src/server/hooks.ts';
import type { ServerOptions } from '../../src/server/pipeline.ts';
import { createGatewayServer } from '../../src/server/server.ts';
import { createLogger } from '../../src/telemetry/log.ts';
import { copyFolder } from './copyFolder.ts';
import { readLog } from './feed.ts';
import { listen } from './listen.ts';
import { readConfig } from './settings.ts';
import { watchResponses } from './watchResponses.ts';

export interface TestGateway {
  readonly url: string;
  readonly database: TestDatabase;
  readonly responseCache: ResponseCache;
  readonly feed: ChangeFeed;
  /** The lines that the gateway has logged, among them the errors that it hid from clients. */
  readonly log: readonly string[];
  /** The token that pages show. */
  readonly shownToken: string | undefined;
  /** The number of open connections. */
  connections(): Promise<number>;
  close(): Promise<void>;
}

/** A data folder with a migrated database: copying one is much faster than creating it. The caller removes the folder. */
export async function copyTemplate(): Promise<string> {
  const engine = inject('engine');
  if (engine.kind !== 'embedded') throw new Error('there is no folder to copy');
  const folder = await mkdtemp(join(tmpdir(), 'dovetail-test-'));
  await copyFolder(engine.template, folder);
  return folder;
}

/** A data folder with a database without tables. Creating one would take longer. */
export async function copyUnmigrated(): Promise<string> {
  const folder = await copyTemplate();
  const database = await openDatabase({ DATABASE_URL: undefined, DATA_DIR: folder });
  await database.pool.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public');
  await database.close();
  return folder;
}

/** A database with Prisma's client, by which tests write and read records. */
export interface TestDatabase extends Database {
  readonly client: PrismaClient;
}

export const withClient = (database: Database): TestDatabase => ({
  ...database,
  client: openClient(database.pool),
});

/** Opens a new database on the engine of the run. */
export async function openTestDatabase(): Promise<TestDatabase> {
  const engine = inject('engine');
  if (engine.kind === 'embedded') {
    const folder = await copyTemplate();
    const database = await openDatabase({ DATABASE_URL: undefined, DATA_DIR: folder });
    return afterClosing(database, () => rm(folder, { recursive: true, force: true }));
  }
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  // Copying the files takes less than half the processor time of copying through the log of the server, the default.
  await administer(engine.url, `CREATE DATABASE ${name} TEMPLATE ${engine.template} STRATEGY FILE_COPY`);
  const database = await openDatabase({ DATABASE_URL: `${engine.url}/${name}`, DATA_DIR: tmpdir() });
  return afterClosing(database, () => administer(engine.url, `DROP DATABASE ${name} WITH (FORCE)`));
}

/**
 * Opens a database once more, for another gateway over it. On a server that is another pool; an embedded database is shared, since
 * only one process may have its engine. The test that opened the database first still has to close it.
 */
export async function openBeside(database: TestDatabase): Promise<TestDatabase> {
  const { connectionString } = database.pool.options;
  return connectionString === undefined ? { ...database, close: async () => {} } : openAt(connectionString);
}

/** Limits that no test reaches. They are not switched off, so that every response passes them and has their headers. */
const highLimits = { RATE_LIMIT: '1000000000', RATE_LIMIT_ANONYMOUS: '1000000000' };

export interface TestGatewayOptions extends Partial<ServerOptions> {
  readonly settings?: Record<string, string>;
  readonly logLevel?: string;
  /** A free port by default. A test may name the port of a gateway that was closed. */
  readonly port?: number;
  /** The memory for cached responses, in bytes; 16 MiB by default. */
  readonly cacheBytes?: number;
  /** In place of the extensions of the list. */
  readonly extensions?: readonly Extension[];
  /** Whether it gets the demo account. Other tests have accounts of their own. */
  readonly hasDemo?: boolean;
  /** A token that pages show. */
  readonly shownToken?: string;
}

/**
 * Starts a gateway over a database, or over a new one. Closing the gateway closes the database, and fails if a response of the
 * REST API did not conform to the OpenAPI document.
 */
export async function openTestGateway(
  given?: TestDatabase,
  options: TestGatewayOptions = {},
): Promise<TestGateway> {
  const database = given ?? (await openTestDatabase());
  const log: string[] = [];
  const feed = await database.openChangeFeed({ readLog });
  const responseCache = createResponseCache(feed, {
    maxBytes: options.cacheBytes ?? 16 * 1024 * 1024,
    maxAge: 300,
  });
  const closing = new AbortController();
  const parts = {
    config: readConfig({ ...highLimits, ...options.settings }),
    database,
    feed,
    responseCache,
    logger: createLogger(options.logLevel ?? 'error', { write: (line: string) => log.push(line) }),
  };
  const turns = createTurns(database.pool.options.max, parts.config.MAX_WAITING);
  const opened: Hooks[] = [];
  const closeParts = () => closeAll([...opened, feed, database]);
  const { shownToken: token, hasDemo = false } = options;
  const list = (options.extensions ?? all).filter(({ settings }) => hasDemo || !('DEMO_ACCOUNT' in settings));
  const hooks = await openExtensions(
    parts.config,
    { ...parts, turns },
    (each) => opened.unshift(each),
    token === undefined
      ? list
      : [...list, { settings: {}, open: async () => ({ shownToken: { token, for: () => token } }) }],
  ).catch(async (error) => {
    await closeParts();
    throw error;
  });
  const server = createGatewayServer({
    ...parts,
    turns,
    hooks,
    closing: closing.signal,
    ...options,
  });
  const responses = watchResponses(server);
  return {
    url: await listen(server, options.port),
    database,
    feed,
    responseCache,
    log,
    shownToken: hooks.shownToken?.token,
    connections: promisify(server.getConnections.bind(server)),
    async close() {
      const closed = once(server, 'close');
      server.close();
      closing.abort();
      server.closeAllConnections();
      await closed;
      await closeParts();
      // The OpenAPI document describes those of a database of its own.
      if (responses.size === 0 || hooks.elsewhere) return;
      // Imported here, since most tests of GraphQL have no REST responses to check.
      const { problemsOf } = await import('./openapiDocument.ts');
      expect(problemsOf(responses.values()), 'what is not as the OpenAPI document has it').toEqual([]);
    },
  };
}

export type DemoGateway = Awaited<ReturnType<typeof openDemoGateway>>;

/** Starts a gateway over a new database with the demo account, whose token it has, as `npm start` does without settings. */
export async function openDemoGateway(options: TestGatewayOptions = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'dovetail-demo-'));
  const settings = { DEMO_ACCOUNT: 'public', DATA_DIR: folder, ...options.settings };
  const gateway = await openTestGateway(undefined, { ...options, hasDemo: true, settings });
  await rm(folder, { recursive: true });
  return { ...gateway, token: gateway.shownToken ?? '' };
}

/** Skips the tests of a `describe` unless the run has the engine that they need. @param reason is printed. */
export function needsEngine(kind: 'embedded' | 'postgres', reason: string): void {
  beforeEach(({ skip }) => {
    skip(inject('engine').kind !== kind, reason);
  });
}

export interface RestResponse {
  status: number;
  headers: Headers;
  /** The JSON envelope. */
  body: { ok: boolean; data?: unknown; error?: string };
}

/** Sends a request to the REST API. @param path below `/api/v1`. */
export async function rest(
  { url }: Pick<TestGateway, 'url'>,
  token: string | undefined,
  path: string,
  options: RequestInit = {},
): Promise<RestResponse> {
  const headers = new Headers(options.headers);
  if (token !== undefined) headers.set('Authorization', `Bearer ${token}`);
  const response = await fetch(`${url}/api/v1${path}`, { ...options, headers });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

/** The data of a REST list. */
export interface List<Record> {
  data: Record[];
  pagination: { limit: number; offset: number };
}

/** Posts JSON to the REST API. */
export function postJson(
  gateway: Pick<TestGateway, 'url'>,
  token: string | undefined,
  path: string,
  body: unknown,
) {
  return rest(gateway, token, path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });
}

export interface GraphqlResponse {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: a test names the shape of its own query where it reads it.
  data: any;
  errors:
    | {
        message: string;
        path?: (string | number)[];
        locations?: unknown[];
        extensions: { code: string; argument?: string };
      }[]
    | undefined;
}

/**
 * Sends an operation to the GraphQL API. A query is sent three times, and must have the same response each time: graphql-js
 * executes the first, the second may come from the cache, and compiled code executes the third. A mutation is sent once.
 */
export async function graphqlOnEveryPath(
  gateway: TestGateway,
  token: string | undefined,
  query: string,
  variables: Record<string, unknown> = {},
): Promise<GraphqlResponse> {
  const { headers, ...response } = await graphqlOnce(gateway, token, query, variables);
  if (/\bmutation\b/.test(query)) return { headers, ...response };
  // No document can have a variable of this name, so nothing reads it. The cache does not know the request.
  for (const again of [variables, { ...variables, 'not a name': Math.random() }]) {
    const { headers: _, ...others } = await graphqlOnce(gateway, token, query, again);
    expect(others).toEqual(response);
  }
  return { headers, ...response };
}

/** The header with the token of a request; none for an anonymous client. */
export const authorizationOf = (token: string | undefined) =>
  token === undefined ? {} : { Authorization: `Bearer ${token}` };

/** Posts a body to the GraphQL API: a text as it is, and anything else as JSON. */
export function postGraphql(
  { url }: Pick<TestGateway, 'url'>,
  token: string | undefined,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...authorizationOf(token), ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

/** Gets the GraphQL API with parameters, each as a text or as JSON. */
export function getGraphql(
  { url }: Pick<TestGateway, 'url'>,
  token: string | undefined,
  given: object,
  headers: Record<string, string> = {},
): Promise<Response> {
  const texts = Object.entries(given).map(([name, value]): [string, string] => [
    name,
    typeof value === 'string' ? value : JSON.stringify(value),
  ]);
  return fetch(`${url}/graphql?${new URLSearchParams(texts)}`, {
    headers: { ...authorizationOf(token), ...headers },
  });
}

/** Sends an operation to the GraphQL API once. */
export async function graphqlOnce(
  { url }: Pick<TestGateway, 'url'>,
  token: string | undefined,
  query: string,
  variables: Record<string, unknown> = {},
  others: Record<string, string> = {},
): Promise<GraphqlResponse> {
  const response = await postGraphql({ url }, token, { query, variables }, others);
  const { data, errors } = await response.json();
  return { status: response.status, headers: response.headers, data, errors };
}

function afterClosing(database: Database, cleanUp: () => Promise<unknown>): TestDatabase {
  return {
    ...withClient(database),
    async close() {
      await database.close();
      await cleanUp();
    },
  };
}

/** Opens the database of a URL. @param direct the address past the pooler that the URL names. */
export const openAt = async (url: string, limits?: PoolLimits, direct?: string): Promise<TestDatabase> =>
  withClient(
    await openDatabase({ DATABASE_URL: url, DATABASE_DIRECT_URL: direct, DATA_DIR: tmpdir() }, limits),
  );

/** Creates a database without tables on the server of the run. @returns its URL. */
export async function newServerDatabase(): Promise<string> {
  const engine = inject('engine');
  if (engine.kind !== 'postgres') throw new Error('the run has no server');
  const name = `new_${randomUUID().replaceAll('-', '')}`;
  await administer(engine.url, `CREATE DATABASE ${name}`);
  return `${engine.url}/${name}`;
}

/** One connection to the server of the run, for all files of a worker. */
let administration: pg.Pool | undefined;

async function administer(url: string, sql: string): Promise<void> {
  administration ??= new pg.Pool({ connectionString: `${url}/postgres`, max: 1, allowExitOnIdle: true });
  await administration.query(sql);
}
