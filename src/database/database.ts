/** The one way to the data: PostgreSQL, embedded or not. */

import pg from 'pg';
import type { Config } from '../config.ts';
import { SetupError } from '../errors.ts';
import { connectionError } from './connectionError.ts';
import { findEmbedded, openEmbedded } from './embedded/embedded.ts';
import type { ChangeFeed } from './feed/changeFeed.ts';
import { listenToEngine, listenToServer } from './feed/notify.ts';
import { type MigrationListener, migrate } from './migrate.ts';
import { newDatabaseFile } from './newDatabase.ts';
import { checkPooler, isPooled, sessionSettings } from './pooler.ts';
import { boundStatements, createStatementNames } from './preparedStatements.ts';
import { createSql, type Sql } from './reader/sql.ts';
import { createSession, longestConnecting } from './session.ts';

export interface Connected {
  readonly pool: pg.Pool;
  readonly sql: Sql;
  close(): Promise<void>;
}

/** What the requests of a gateway may take of the database. Commands take more. */
export interface Bounds {
  /** How many connections there are at most. */
  readonly connections: number;
  /** How long a statement may take, in milliseconds. */
  readonly statement: number;
}

export interface Database extends Connected {
  /** Whether the engine runs inside this process. */
  readonly embedded: boolean;
  /** Settles when the engine has failed for good, which one inside this process may do. */
  readonly failure: Promise<Error>;
  /** Begins to listen to the changes that anybody makes. The feed is the caller's to close, before the database. */
  openChangeFeed(): Promise<ChangeFeed>;
}

/** The oldest PostgreSQL that the migrations and the tests are written for. */
export const oldestServer = 15;

/**
 * Opens the database that the settings name and applies pending migrations.
 * @param listener told of those, and of what they repaired.
 * @throws {SetupError} when it cannot be reached, is too old, or is in use by another gateway.
 */
export async function openDatabase(
  config: Pick<Config, 'DATABASE_URL' | 'DATA_DIR'>,
  bounds?: Bounds,
  listener?: MigrationListener,
): Promise<Database> {
  if (config.DATABASE_URL !== undefined) return openServer(config.DATABASE_URL, bounds, listener);
  const postgres = await openEmbedded(config.DATA_DIR, { packed: await newDatabaseFile() });
  const { connection } = postgres;
  try {
    await migrate(connection, undefined, listener);
    return {
      ...connectTo({ ...connection, ...boundsOnClient(bounds) }, postgres.close),
      embedded: true,
      failure: postgres.failure,
      openChangeFeed: () => listenToEngine(postgres),
    };
  } catch (error) {
    await postgres.close();
    throw error;
  }
}

/**
 * Opens the database for a command that may run beside a gateway: the embedded engine is shared with the
 * process that has it open, and opened here only if none has.
 */
export async function joinDatabase(
  config: Pick<Config, 'DATABASE_URL' | 'DATA_DIR'>,
  listener?: MigrationListener,
): Promise<Connected> {
  const running = config.DATABASE_URL === undefined ? await findEmbedded(config.DATA_DIR) : undefined;
  return running
    ? connectTo({ ...running.connection, ...boundsOnClient(undefined) }, running.close)
    : openDatabase(config, undefined, listener);
}

async function openServer(url: string, bounds?: Bounds, listener?: MigrationListener): Promise<Database> {
  const connection = { connectionString: url };
  const pooled = await checkServer(url);
  const database = connectTo(
    { ...connection, ...boundsOnClient(bounds), ...(pooled ? {} : sessionOfOurOwn(bounds)) },
    async () => {},
    pooled ? undefined : createStatementNames(),
  );
  if (!pooled) database.pool.on('connect', (client) => boundStatements(client));
  try {
    await migrate(connection, undefined, listener);
    return {
      ...database,
      embedded: false,
      // A server that is away may come back.
      failure: new Promise(() => {}),
      openChangeFeed: () => listenToServer(connection),
    };
  } catch (error) {
    await database.close();
    throw error;
  }
}

/**
 * Whether the server stands behind a pooler.
 * @throws {SetupError} when it cannot be reached, or not be used.
 */
export async function checkServer(url: string): Promise<boolean> {
  const { client, close } = createSession({ connectionString: url });
  try {
    await client.connect();
    const { rows } = await client.query<{ version: string }>(
      `SELECT current_setting('server_version_num') AS version`,
    );
    const version = Math.trunc(Number(rows[0]?.version) / 10_000);
    if (version < oldestServer) {
      throw new SetupError(`DATABASE_URL names a PostgreSQL ${version}, but takes ${oldestServer} or later.`);
    }
    const pooled = await isPooled(client);
    if (pooled) await checkPooler(client);
    return pooled;
  } catch (error) {
    if (error instanceof SetupError) throw error;
    throw connectionError(url, client, error);
  } finally {
    await close();
  }
}

/** What a server may be late with its own timeout, in milliseconds, before it counts as gone. */
const lateness = 1_000;

/** How long, in milliseconds, a transaction may idle: nobody ends the one of a gateway whose machine went down. */
const longestIdle = 60_000;

/** How long, in milliseconds, a statement of a command may take. */
const longestOfCommand = 60_000;

/** What holds also where the server is gone without a word. */
function boundsOnClient(bounds: Bounds | undefined): pg.PoolConfig {
  return bounds
    ? { max: bounds.connections, query_timeout: bounds.statement + lateness }
    : { query_timeout: longestOfCommand };
}

/**
 * Settings for sessions that are the gateway's alone, which has the server stop what takes too long, the wait for a
 * lock included. Said in a statement, since not everything that speaks for a server takes them when a connection
 * begins. The embedded engine has no timers, and nobody else's locks.
 */
function sessionOfOurOwn(bounds: Bounds | undefined): pg.PoolConfig {
  const text = sessionSettings(
    bounds && {
      statement_timeout: String(bounds.statement),
      idle_in_transaction_session_timeout: String(longestIdle),
    },
  );
  // The pool waits for it, though its types do not say so.
  return { onConnect: (client) => client.query(text) };
}

function connectTo(
  connection: pg.PoolConfig,
  release: () => Promise<void>,
  nameOf?: (text: string) => string,
): Connected {
  const pool = new pg.Pool({
    ...connection,
    connectionTimeoutMillis: longestConnecting,
    // Probes find a server that is gone without a word while nobody asks.
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  });
  // A connection that breaks while idle is replaced at the next query; without a listener it would end the process.
  pool.on('error', () => {});
  return {
    pool,
    sql: createSql(pool, nameOf),
    async close() {
      await pool.end();
      await release();
    },
  };
}
