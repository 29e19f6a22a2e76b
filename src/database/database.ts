/** Opens the database, an embedded PostgreSQL or a server, for gateways and commands. */

import pRetry from 'p-retry';
import type pg from 'pg';
import type { Config } from '../config/config.ts';
import { closeAll } from './closing.ts';
import { findServer, type ServerUrls } from './connection.ts';
import { findEmbedded, openEmbedded } from './embedded/embedded.ts';
import { FolderInUse } from './embedded/folder.ts';
import { newDatabaseFile } from './embedded/newDatabase.ts';
import type { ChangeFeed, FeedReport } from './feed/changeFeed.ts';
import { listenToEngine, listenToServer, type ReadLog } from './feed/notify.ts';
import { watchServer } from './identity.ts';
import { type MigrationListener, migrate } from './migrate.ts';
import { createSql, type ReadCheck, type Sql, statementName } from './reader/sql.ts';
import { endWhenSilent, longestConnecting, Pool, settingsText } from './session.ts';

export interface ConnectedDatabase {
  readonly pool: pg.Pool;
  readonly sql: Sql;
  close(): Promise<void>;
}

/** Limits for the requests of a gateway. Commands have higher ones. */
export interface PoolLimits {
  /** How many connections there are at most. */
  readonly connections: number;
  /** How long a statement may take, in milliseconds. */
  readonly statement: number;
}

/** A server that is about to be listened to. */
export interface AnnouncingServer {
  /** The way to it past a pooler. */
  readonly direct: pg.ClientConfig;
  /** Whether it supports logical decoding. */
  readonly decodes: boolean;
}

export interface FeedOptions {
  /** Chooses how a server announces changes. By default it stays as it is. */
  choose?(server: AnnouncingServer): Promise<void>;
  readonly readLog?: ReadLog | undefined;
  /** Called when announcements stop arriving, with the reason, and when they arrive again. */
  readonly report?: FeedReport;
}

export interface Database extends ConnectedDatabase {
  /** Whether the engine runs inside this process. */
  readonly embedded: boolean;
  /** Settles if the engine has failed for good. Only the embedded one can. */
  readonly failure: Promise<Error>;
  /**
   * Begins to listen to the changes of all programs. The caller has to close the feed before the database.
   */
  openChangeFeed(options?: FeedOptions): Promise<ChangeFeed>;
}

/** The settings that name the database, and the way to it. */
type DatabaseSettings = Pick<Config, 'DATABASE_URL' | 'DATA_DIR'> &
  Partial<Pick<Config, 'DATABASE_DIRECT_URL'>>;

/**
 * Opens the database that the settings name and applies pending migrations.
 * @param listener called about pending migrations.
 * @throws {SetupError} when it cannot be reached, is too old, or is in use by another gateway.
 */
export async function openDatabase(
  config: DatabaseSettings,
  limits?: PoolLimits,
  listener?: MigrationListener,
): Promise<Database> {
  const { DATABASE_URL: url, DATABASE_DIRECT_URL: directUrl } = config;
  if (url !== undefined) return openServer({ url, directUrl }, limits, listener);
  const postgres = await openEmbedded(config.DATA_DIR, await newDatabaseFile());
  const { connection, failure, close } = postgres;
  await migrate(connection, undefined, listener).catch((error) => closeAll([postgres], [error]));
  return {
    ...connectTo(connection, { limits, release: close }),
    embedded: true,
    failure,
    // The engine announces in one way only.
    openChangeFeed: (options) => listenToEngine(postgres, options?.report),
  };
}

/**
 * Opens the database for a command that may run beside a gateway: the embedded engine is shared with the
 * process that has it open, and opened here only if none has.
 * @throws {SetupError} as `openDatabase`, and if another process holds the folder for too long without listening.
 */
export async function joinDatabase(
  config: DatabaseSettings,
  listener?: MigrationListener,
): Promise<ConnectedDatabase> {
  if (config.DATABASE_URL !== undefined) return openDatabase(config, undefined, listener);
  return retryWhileInUse(longestOpening, async () => {
    const running = await findEmbedded(config.DATA_DIR);
    return running ? connectTo(running) : openDatabase(config, undefined, listener);
  });
}

/** How long, in milliseconds, a command waits for a process that opens the folder or closes it. */
export const longestOpening = 10_000;

/** Tries to open a database again and again, for this many milliseconds, while another process has its folder open. */
export const retryWhileInUse = <Opened>(longest: number, open: () => Promise<Opened>): Promise<Opened> =>
  pRetry(open, {
    retries: Number.POSITIVE_INFINITY,
    maxRetryTime: longest,
    minTimeout: 100,
    factor: 1,
    shouldRetry: ({ error }) => error instanceof FolderInUse,
  });

async function openServer(
  urls: ServerUrls,
  limits?: PoolLimits,
  listener?: MigrationListener,
): Promise<Database> {
  const { server, direct, pooled, decodes } = await findServer(urls);
  await migrate(direct, undefined, listener);
  const watch = watchServer();
  const setUp = sessionSetUp(limits);
  return {
    ...connectTo(server, {
      limits,
      ...(pooled
        ? { readCheck: watch.check }
        : { prepare: (client) => setUp(client).then(() => watch.add(client)) }),
      // Commands have few statements. Behind a pooler they prepare none, so as to leave nothing in its sessions.
      ...((!pooled || limits) && { nameOf: statementName }),
    }),
    embedded: false,
    // A server that is away may come back.
    failure: new Promise(() => {}),
    async openChangeFeed({ choose, readLog, report } = {}) {
      await choose?.({ direct, decodes });
      return listenToServer(direct, server, { readLog, watch, ...(report && { report }) });
    },
  };
}

/** How late, in milliseconds, a server may be with its own timeout before it counts as gone. */
const lateness = 1_000;

/** How long, in milliseconds, a transaction may idle. Without this, that of a gateway whose machine went down would stay open. */
const longestIdle = 60_000;

/** How long, in milliseconds, a statement of a command may take. */
const longestOfCommand = 60_000;

/**
 * Makes a function that sets the timeouts of a session: the server then stops statements that take too long or wait too long for a
 * lock. It uses a statement, since some proxies reject such settings in the startup packet. The embedded engine has no timers,
 * and no locks of other programs.
 */
export function sessionSetUp(limits: PoolLimits | undefined, others: Readonly<Record<string, string>> = {}) {
  const text = settingsText(
    limits && {
      statement_timeout: String(limits.statement),
      idle_in_transaction_session_timeout: String(longestIdle),
      ...others,
    },
  );
  return (client: pg.ClientBase): Promise<unknown> => client.query(text);
}

interface ConnectOptions {
  readonly limits?: PoolLimits | undefined;
  readonly nameOf?: (text: string) => string;
  readonly readCheck?: ReadCheck;
  /** Prepares a new connection for its first statement. */
  prepare?(client: pg.ClientBase): Promise<unknown>;
  /** Called once all connections are closed. */
  release?(): Promise<void>;
}

/** Opens a pool, and the SQL interface over it. */
export function connectTo(
  connection: pg.PoolConfig,
  { limits, nameOf, readCheck, prepare, release }: ConnectOptions = {},
): ConnectedDatabase {
  const pool = new Pool({
    ...connection,
    // These limits also hold if the server vanishes silently. For statements of a gateway, `endWhenSilent` does that.
    ...(limits ? { max: limits.connections } : { query_timeout: longestOfCommand }),
    connectionTimeoutMillis: connection.connectionTimeoutMillis ?? longestConnecting,
    // TCP probes notice a server that vanishes silently while no statement runs.
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    // The pool waits for its promise.
    async onConnect(client) {
      if (limits) endWhenSilent(client, limits.statement + lateness);
      await prepare?.(client);
    },
  });
  return {
    pool,
    sql: createSql(pool, nameOf, readCheck),
    async close() {
      await closeAll([{ close: () => pool.end() }, { close: release }]);
    },
  };
}
