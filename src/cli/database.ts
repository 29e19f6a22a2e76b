/** Access to the database for commands, also while a gateway has it open. */

import { type Config, commandLine, program } from '../config/config.ts';
import { closeAll } from '../database/closing.ts';
import { type ConnectedDatabase, joinDatabase } from '../database/database.ts';
import { hasDatabase } from '../database/embedded/embedded.ts';
import { folderOf } from '../database/embedded/folder.ts';
import type { PrismaClient } from '../database/generated/prisma/client.ts';
import type { MigrationListener } from '../database/migrate.ts';
import { errorText, lacksRight, SetupError, systemCodeOf, withoutPassword } from '../errors.ts';
import { say } from './output.ts';

/** The settings that name the database. */
type DatabaseLocation = Pick<Config, 'DATABASE_URL' | 'DATA_DIR'>;

type Opened = Pick<ConnectedDatabase, 'pool' | 'sql'> & { readonly client: PrismaClient };

/**
 * Opens the database that the settings name, and closes it when the work is done.
 * @param options.mayCreate whether a missing database is created. A command that only reads must not create one: the
 *   settings more likely name the wrong place.
 */
export async function withDatabase<Place extends DatabaseLocation>(
  config: Place,
  run: (database: Opened, config: Place) => Promise<void>,
  { mayCreate = false } = {},
): Promise<void> {
  if (!mayCreate && config.DATABASE_URL === undefined && !(await hasDatabase(config.DATA_DIR)))
    throw new SetupError(`There is no database in ${folderOf(config.DATA_DIR)}. ${whereToLook}`);
  // Imported here, so that the other commands start faster.
  const [{ openClient }, { watchPool }] = await Promise.all([
    import('../database/client.ts'),
    import('../database/clients.ts'),
  ]);
  const database = await joinDatabase(config, createMigrationReporter(config, mayCreate));
  const { pool, sql } = database;
  const errors: unknown[] = [];
  // Prisma's client has an error of its own in place of that of a statement.
  let failure: unknown;
  const client = openClient(
    watchPool(pool, (error) => {
      failure = error;
      throw error;
    }),
  );
  await run({ pool, sql, client }, config).catch((error) => errors.push(explain(error, failure)));
  await closeAll([database], errors);
}

/** Names the role of DATABASE_URL if it lacks a right. @param failure of a statement of Prisma's client. */
function explain(error: unknown, failure: unknown): unknown {
  const denial = [error, failure].find((each) => systemCodeOf(each) === lacksRight);
  if (denial === undefined) return error;
  return new SetupError(`The role of DATABASE_URL may not do that: ${errorText(denial)}`, { cause: error });
}

const whereToLook = 'Run this where the gateway was started, or set DATA_DIR or DATABASE_URL as it has them.';

/** Names the database, so that a user notices if it is the wrong one. */
export function locationText({ DATABASE_URL, DATA_DIR }: DatabaseLocation): string {
  return DATABASE_URL === undefined
    ? `the embedded database in ${folderOf(DATA_DIR)}`
    : `the database ${withoutPassword(DATABASE_URL)}`;
}

/** The line for another command on the same database. It leaves out a URL with a password: the environment has it. */
export function nextCommand(config: DatabaseLocation, command: string): string {
  const { DATABASE_URL } = config;
  return DATABASE_URL === undefined || withoutPassword(DATABASE_URL) === DATABASE_URL
    ? commandLine(config, command)
    : `${program()} ${command}`;
}

/**
 * Creates a listener that reports that a database is about to be migrated.
 * @param mayCreate whether a database without Dovetail's tables may be migrated too; otherwise it is an error.
 */
export function createMigrationReporter(
  place: DatabaseLocation,
  mayCreate = true,
): Required<MigrationListener> {
  return {
    waiting: () => say('Waiting for another process that migrates the database.'),
    pending({ length }, isNew) {
      if (isNew && !mayCreate)
        throw new SetupError(`Nothing of Dovetail's is in ${locationText(place)}. ${whereToLook}`);
      say(`Applying ${length === 1 ? '1 migration' : `${length} migrations`} to ${locationText(place)}.`);
    },
  };
}
