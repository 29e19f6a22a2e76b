/** Access to the database for commands, also while a gateway has it open. */

import { resolve } from 'node:path';
import { readConfig } from '../config/config.ts';
import { type Connected, joinDatabase } from '../database/database.ts';
import { hasDatabase } from '../database/embedded/embedded.ts';
import type { PrismaClient } from '../database/generated/prisma/client.ts';
import type { MigrationListener } from '../database/migrate.ts';
import { errorText, SetupError, systemCodeOf, withoutPassword } from '../errors.ts';

/** The settings that say which database it is. */
export type DatabaseLocation = Pick<ReturnType<typeof readConfig>, 'DATABASE_URL' | 'DATA_DIR'>;

/**
 * The environment without UPSTREAM_TOKEN: a shell may still have it for `sync --from`, and without UPSTREAM_URL it is an error.
 */
export const databaseEnvironment = () => ({ ...process.env, UPSTREAM_TOKEN: undefined });

/**
 * Opens the database that the settings name, and closes it when the work is done.
 * @param options.mayCreate whether the database is created if there is none. A command that only reads must not create one:
 *   it is more likely that the settings name the wrong place.
 */
export async function withDatabase(
  run: (database: Connected, config: DatabaseLocation) => Promise<void>,
  { mayCreate = false }: { mayCreate?: boolean } = {},
): Promise<void> {
  const config = readConfig(databaseEnvironment());
  if (!mayCreate) await rejectMissing(config);
  const database = await joinDatabase(config, createMigrationReporter(config, mayCreate));
  try {
    await run(database, config);
  } catch (error) {
    throw isMissingRight(error) ? new SetupError(missingRightMessage(error), { cause: error }) : error;
  } finally {
    await database.close();
  }
}

/** Does the same with Prisma's client, which is imported here, so that the other commands start faster. */
export function withClient(
  run: (client: PrismaClient, config: DatabaseLocation, database: Connected) => Promise<void>,
  options?: { mayCreate?: boolean },
): Promise<void> {
  return withDatabase(async (database, config) => {
    const { openClient } = await import('../database/client.ts');
    await run(openClient(database.pool), config, database);
  }, options);
}

/** @throws {SetupError} if the settings name no server, and their folder has no database. */
async function rejectMissing({ DATABASE_URL, DATA_DIR }: DatabaseLocation): Promise<void> {
  if (DATABASE_URL !== undefined || (await hasDatabase(DATA_DIR))) return;
  throw new SetupError(`There is no database in ${resolve(DATA_DIR)}. ${whereToLook}`);
}

const whereToLook = 'Run this where the gateway was started, or set DATA_DIR or DATABASE_URL as it has them.';

/** Names the database, so that a user notices if it is the wrong one. */
export function locationText({ DATABASE_URL, DATA_DIR }: DatabaseLocation): string {
  return DATABASE_URL === undefined
    ? `the embedded database in ${resolve(DATA_DIR)}`
    : `the database ${withoutPassword(DATABASE_URL)}`;
}

/** Whether PostgreSQL rejects a statement because the role lacks a right. Prisma has the code in its message only. */
function isMissingRight(error: unknown): boolean {
  return systemCodeOf(error) === '42501' || errorText(error).includes('`42501`');
}

const missingRightMessage = (error: unknown) =>
  `The role of DATABASE_URL may not do that: ${reasonIn(errorText(error))}. Name one that may; docs/deployment.md has the rights that commands need.`;

/** The message of PostgreSQL, which is a part of Prisma's. */
const reasonIn = (text: string) => /Message: `([^`]*)`/.exec(text)?.[1] ?? text.split('\n').at(-1);

/** Reports on standard error that a migration waits for another. */
export const migrationReporter: MigrationListener = {
  waiting() {
    process.stderr.write('Waiting for another process that migrates the database.\n');
  },
};

/**
 * Creates a listener that also reports that a database is about to be migrated.
 * @param mayCreate whether a database without Dovetail's tables may be migrated too; otherwise it is an error.
 */
export function createMigrationReporter(place: DatabaseLocation, mayCreate = true): MigrationListener {
  const { DATABASE_URL, DATA_DIR } = place;
  const name = DATABASE_URL === undefined ? resolve(DATA_DIR) : withoutPassword(DATABASE_URL);
  return {
    ...migrationReporter,
    pending({ length }, isNew) {
      if (isNew && !mayCreate)
        throw new SetupError(`Nothing of Dovetail's is in ${locationText(place)}. ${whereToLook}`);
      const migrations = length === 1 ? '1 migration' : `${length} migrations`;
      process.stderr.write(`Applying ${migrations} to the database in ${name} first.\n`);
    },
  };
}
