/** The one way to the data: PostgreSQL, embedded or not, behind the same Prisma client. */

import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { type Config, SetupError, withoutPassword } from '../config.ts';
import { PrismaClient } from '../generated/prisma/client.ts';
import { findEmbedded, openEmbedded } from './embedded.ts';
import { migrate } from './migrate.ts';

export interface Database {
  readonly client: PrismaClient;
  readonly pool: pg.Pool;
  /** Whether the engine runs inside this process. */
  readonly embedded: boolean;
  close(): Promise<void>;
}

/** The oldest PostgreSQL that the migrations and the tests are written for. */
const oldestServer = 15;

/**
 * Opens the database that the settings name and applies pending migrations.
 * @throws {SetupError} when it cannot be reached, is too old, or is in use by another gateway.
 */
export async function openDatabase(config: Pick<Config, 'DATABASE_URL' | 'DATA_DIR'>): Promise<Database> {
  if (config.DATABASE_URL !== undefined) return openServer(config.DATABASE_URL);
  const { connection, close } = await openEmbedded(config.DATA_DIR);
  try {
    await migrate(connection);
    return connectTo(connection, true, close);
  } catch (error) {
    await close();
    throw error;
  }
}

/**
 * Opens the database for a command that may run beside a gateway: the embedded engine is shared with the
 * process that has it open, and opened here only if none has.
 */
export async function joinDatabase(config: Pick<Config, 'DATABASE_URL' | 'DATA_DIR'>): Promise<Database> {
  const running = config.DATABASE_URL === undefined ? await findEmbedded(config.DATA_DIR) : undefined;
  return running ? connectTo(running.connection, false, running.close) : openDatabase(config);
}

async function openServer(url: string): Promise<Database> {
  const connection = { connectionString: url };
  const database = connectTo(connection, false, async () => {});
  try {
    const { rows } = await database.pool
      .query<{ version: string }>('SHOW server_version_num')
      .catch((error) => {
        throw new SetupError(
          `DATABASE_URL is ${JSON.stringify(withoutPassword(url))}, but cannot be reached: ${reason(error)}`,
        );
      });
    const version = Math.trunc(Number(Object.values(rows[0] ?? {})[0]) / 10_000);
    if (version < oldestServer) {
      throw new SetupError(`DATABASE_URL names a PostgreSQL ${version}, but takes ${oldestServer} or later.`);
    }
    await migrate(connection);
    return database;
  } catch (error) {
    await database.close();
    throw error;
  }
}

function connectTo(connection: pg.ClientConfig, embedded: boolean, release: () => Promise<void>): Database {
  const pool = new pg.Pool({ ...connection, connectionTimeoutMillis: 5_000 });
  // A connection that breaks while idle is replaced at the next query; without a listener it would end the process.
  pool.on('error', () => {});
  const client = new PrismaClient({ adapter: new PrismaPg(pool) });
  return {
    client,
    pool,
    embedded,
    async close() {
      await client.$disconnect();
      await pool.end();
      await release();
    },
  };
}

/** A refused connection to a name with several addresses has its reasons one level down. */
function reason(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reason).join('; ');
  return error instanceof Error ? error.message : String(error);
}
