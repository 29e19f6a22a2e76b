/** The database as commands use it, also beside a gateway that has it open. */

import { resolve } from 'node:path';
import { readConfig } from '../config.ts';
import { type Connected, joinDatabase } from '../database/database.ts';
import { hasDatabase } from '../database/embedded/embedded.ts';
import type { MigrationListener } from '../database/migrate.ts';
import { errorText, SetupError, withoutPassword } from '../errors.ts';

/** What of the settings says which database it is. */
export type DatabaseLocation = Pick<ReturnType<typeof readConfig>, 'DATABASE_URL' | 'DATA_DIR'>;

/** Without the token that `sync --from` takes, which may go on standing in the environment of a shell. */
export const settingsOfDatabase = () => ({ ...process.env, UPSTREAM_TOKEN: undefined });

/**
 * Opens the database that the settings name, and closes it when the work is done.
 * @param options.makes whether the database is made if there is none: what only looks for something would find nothing.
 */
export async function withDatabase(
  run: (database: Connected, config: DatabaseLocation) => Promise<void>,
  { makes = false }: { makes?: boolean } = {},
): Promise<void> {
  const config = readConfig(settingsOfDatabase());
  if (!makes) await rejectMissing(config);
  const database = await joinDatabase(config, migrationTeller(config, makes));
  try {
    await run(database, config);
  } catch (error) {
    throw isLackOfRights(error) ? new SetupError(lackOfRights(error), { cause: error }) : error;
  } finally {
    await database.close();
  }
}

/** @throws {SetupError} where the settings name no server, and there is no database in the folder that they name. */
async function rejectMissing({ DATABASE_URL, DATA_DIR }: DatabaseLocation): Promise<void> {
  if (DATABASE_URL !== undefined || (await hasDatabase(DATA_DIR))) return;
  throw new SetupError(`There is no database in ${resolve(DATA_DIR)}. ${whereToLook}`);
}

const whereToLook = 'Run this where the gateway was started, or set DATA_DIR or DATABASE_URL as it has them.';

/** Which database it is, for whoever may have meant another. */
export function locationText({ DATABASE_URL, DATA_DIR }: DatabaseLocation): string {
  return DATABASE_URL === undefined
    ? `the embedded database in ${resolve(DATA_DIR)}`
    : `the database ${withoutPassword(DATABASE_URL)}`;
}

/** Whether PostgreSQL says that the role may not do that, to us or to Prisma. */
function isLackOfRights(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === '42501' || errorText(error).includes('`42501`');
}

const lackOfRights = (error: unknown) =>
  `The role of DATABASE_URL may not do that: ${reasonIn(errorText(error))}. Name one that may; docs/deployment.md has the rights that commands need.`;

/** What PostgreSQL says, which Prisma has among words of its own. */
const reasonIn = (text: string) => /Message: `([^`]*)`/.exec(text)?.[1] ?? text.split('\n').at(-1);

export function sayWaiting(): void {
  process.stderr.write('Waiting for another process that migrates the database.\n');
}

export function sayBlocked(by: string): void {
  process.stderr.write(`A migration needs a lock, and is tried again; it is held by: ${by}\n`);
}

/**
 * Says that a database is about to be migrated: whoever only wanted to look may have named the wrong one.
 * @param makes whether one without any tables of ours is migrated too.
 */
export function migrationTeller(place: DatabaseLocation, makes = true): MigrationListener {
  const { DATABASE_URL, DATA_DIR } = place;
  const name = DATABASE_URL === undefined ? resolve(DATA_DIR) : withoutPassword(DATABASE_URL);
  return {
    waiting: sayWaiting,
    blocked: sayBlocked,
    pending({ length }, isNew) {
      if (isNew && !makes)
        throw new SetupError(`Nothing of Dovetail's is in ${locationText(place)}. ${whereToLook}`);
      const migrations = length === 1 ? '1 migration' : `${length} migrations`;
      process.stderr.write(`Applying ${migrations} to the database in ${name} first.\n`);
    },
    repaired(what) {
      process.stderr.write(`Repaired: ${what}\n`);
    },
  };
}
