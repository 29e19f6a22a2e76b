/** A gateway for a test: over a database of its own, on a free port, spoken to over real HTTP. */

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { beforeEach, expect, inject } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { openClient } from '../../src/database/client.ts';
import { type Database, openDatabase } from '../../src/database/database.ts';
import type { ChangeFeed } from '../../src/database/feed/changeFeed.ts';
import type { PrismaClient } from '../../src/database/generated/prisma/client.ts';
import { openReplicas, type Replicas } from '../../src/database/replicas/replicas.ts';
import { prepareDemo } from '../../src/demo/demoAccount.ts';
import { createResponseCache, type ResponseCache } from '../../src/http/responseCache.ts';
import { loadOptionalFeatures } from '../../src/server/optionalFeatures.ts';
import type { ServerOptions } from '../../src/server/options.ts';
import { createGatewayServer } from '../../src/server/server.ts';
import { createLogger } from '../../src/telemetry/log.ts';
import { copyFolder } from './copyFolder.ts';
import { watchResponses } from './watchResponses.ts';

export interface TestGateway {
  readonly url: string;
  readonly database: TestDatabase;
  readonly responseCache: ResponseCache;
  readonly feed: ChangeFeed;
  readonly replicas: Replicas | undefined;
  /** The lines that the gateway has logged: what it hid from clients. */
  readonly log: readonly string[];
  /** How many connections it has. */
  connections(): Promise<number>;
  close(): Promise<void>;
}

/** A folder that has its tables already, which is much faster than to create one. The caller removes it. */
export async function copyTemplate(): Promise<string> {
  const engine = inject('engine');
  if (engine.kind !== 'embedded') throw new Error('there is no folder to copy');
  const folder = await mkdtemp(join(tmpdir(), 'dovetail-test-'));
  await copyFolder(engine.template, folder);
  return folder;
}

/** The same, of which one migration is pending. To make a database from nothing takes long. */
export async function copyUnmigrated(): Promise<string> {
  const folder = await copyTemplate();
  const database = await openDatabase({ DATABASE_URL: undefined, DATA_DIR: folder });
  await database.pool.query(
    `DROP TABLE "RateLimit"; DELETE FROM "_prisma_migrations" WHERE migration_name LIKE '%_rate_limit'`,
  );
  await database.close();
  return folder;
}

/** A database, and Prisma's client for the tests to write and look with. */
export interface TestDatabase extends Database {
  readonly client: PrismaClient;
}

export const withClient = (database: Database): TestDatabase => ({
  ...database,
  client: openClient(database.pool),
});

/** Opens a database of the test's own on the engine of the run. */
export async function openTestDatabase(): Promise<TestDatabase> {
  const engine = inject('engine');
  if (engine.kind === 'embedded') {
    const folder = await copyTemplate();
    const database = await openDatabase({ DATABASE_URL: undefined, DATA_DIR: folder });
    return afterClosing(database, () => rm(folder, { recursive: true, force: true }));
  }
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  await administer(engine.url, `CREATE DATABASE ${name} TEMPLATE ${engine.template}`);
  const database = await openDatabase({ DATABASE_URL: `${engine.url}/${name}`, DATA_DIR: tmpdir() });
  return afterClosing(database, () => administer(engine.url, `DROP DATABASE ${name} WITH (FORCE)`));
}

/**
 * What another gateway over the same database has: on a server connections of its own, embedded the connections of
 * the one process that may have the engine. Closing it leaves the database to the test that opened it.
 */
export async function openBeside(database: TestDatabase): Promise<TestDatabase> {
  const { connectionString } = database.pool.options;
  return connectionString === undefined
    ? { ...database, close: async () => {} }
    : withClient(await openDatabase({ DATABASE_URL: connectionString, DATA_DIR: tmpdir() }));
}

/** High enough for any test, and there: what a limit costs and says belongs to every answer. */
const highLimits = { RATE_LIMIT: '1000000000', RATE_LIMIT_ANONYMOUS: '1000000000' };

export interface TestGatewayOptions extends Partial<ServerOptions> {
  readonly settings?: Record<string, string>;
  readonly logLevel?: string;
  /** A free one unless it is that of a gateway that was closed. */
  readonly port?: number;
  /** Opens the mirror, over what the gateway has open. */
  readonly openMirror?: (
    parts: Pick<ServerOptions, 'config' | 'database' | 'feed' | 'responseCache' | 'logger'>,
  ) => Promise<ServerOptions['mirror']>;
  /** How much memory cached responses may take, if not as much as is usual in tests. */
  readonly cacheBytes?: number;
  /** Standbys of the database, by their URLs. */
  readonly standbys?: readonly string[];
}

/**
 * Serves a database, or a new one, with these settings. Closing the gateway closes the database, and fails if one of
 * the responses of the REST API was not as the OpenAPI document has it.
 */
export async function openTestGateway(
  given?: TestDatabase,
  options: TestGatewayOptions = {},
): Promise<TestGateway> {
  const database = given ?? (await openTestDatabase());
  const log: string[] = [];
  const feed = await database.openChangeFeed();
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
  const mirror = await options.openMirror?.(parts);
  const bounds = { connections: 5, statement: 10_000 };
  const replicas =
    options.standbys &&
    (await openReplicas({ ...database, feed, bounds, urls: options.standbys, onChange() {} }));
  const server = createGatewayServer({
    ...parts,
    mirror,
    replicas,
    demoToken: undefined,
    closing: closing.signal,
    additions: await loadOptionalFeatures(parts.config),
    // A machine that tests keep busy is no overload.
    longestWait: 20_000,
    ...options,
  });
  const responses = watchResponses(server);
  server.listen(options.port ?? 0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    database,
    feed,
    responseCache,
    replicas,
    log,
    connections: promisify(server.getConnections.bind(server)),
    async close() {
      const closed = once(server, 'close');
      server.close();
      closing.abort();
      server.closeAllConnections();
      await closed;
      await mirror?.close();
      await replicas?.close();
      await feed.close();
      await database.close();
      // What is relayed is the upstream's to document.
      if (responses.size === 0 || mirror?.tokens) return;
      // Loaded when there is something to judge: most tests of GraphQL have nothing.
      const { problemsOf } = await import('./openapiDocument.ts');
      expect(problemsOf(responses.values()), 'what is not as the OpenAPI document has it').toEqual([]);
    },
  };
}

export interface DemoGateway extends TestGateway {
  /** The token of the demo account. */
  readonly token: string;
}

/** Serves a new database that has the demo account, as a gateway without settings does. */
export async function openDemoGateway(): Promise<DemoGateway> {
  const database = await openTestDatabase();
  const folder = await mkdtemp(join(tmpdir(), 'dovetail-demo-'));
  const demoToken = await prepareDemo(database, folder);
  await rm(folder, { recursive: true });
  return { ...(await openTestGateway(database, { demoToken })), token: demoToken ?? '' };
}

/** Skips the tests of a `describe`, saying why, unless the run has the engine that they need. */
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

/** Asks the REST API. The path is below `/api/v1`. */
export async function rest(
  gateway: TestGateway,
  token: string | undefined,
  path: string,
  options: RequestInit = {},
): Promise<RestResponse> {
  const headers = new Headers(options.headers);
  if (token !== undefined) headers.set('Authorization', `Bearer ${token}`);
  const response = await fetch(`${gateway.url}/api/v1${path}`, { ...options, headers });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

/** The data of a REST list. */
export interface List<Record> {
  data: Record[];
  pagination: { limit: number; offset: number };
}

/** Posts JSON to the REST API. */
export function postJson(gateway: TestGateway, token: string | undefined, path: string, body: unknown) {
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
 * Asks the GraphQL API. A query is asked three times, since each time goes another way: Yoga, then compiled,
 * then from memory. All of them must respond alike.
 */
export async function graphql(
  gateway: TestGateway,
  token: string | undefined,
  query: string,
  variables: Record<string, unknown> = {},
): Promise<GraphqlResponse> {
  const response = await graphqlOnce(gateway, token, query, variables);
  if (!/\bmutation\b/.test(query)) {
    for (const path of ['compiled', 'from memory']) {
      const { headers: _, ...again } = await graphqlOnce(gateway, token, query, variables);
      expect(again, path).toEqual({ status: response.status, data: response.data, errors: response.errors });
    }
  }
  return response;
}

export async function graphqlOnce(
  gateway: TestGateway,
  token: string | undefined,
  query: string,
  variables: Record<string, unknown> = {},
): Promise<GraphqlResponse> {
  const response = await fetch(`${gateway.url}/graphql`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({ query, variables }),
  });
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

async function administer(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: `${url}/postgres` });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
