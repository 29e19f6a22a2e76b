/** The database as commands use it, also beside a gateway that has it open. */

import { readConfig } from '../config.ts';
import { type Connected, joinDatabase } from '../database/database.ts';
import type { MigrationListener } from '../database/migrate.ts';
import { errorText, SetupError, withoutPassword } from '../errors.ts';

/** What of the settings says which database it is. */
export type Place = Pick<ReturnType<typeof readConfig>, 'DATABASE_URL' | 'DATA_DIR'>;

/** Opens the database that the settings name, and closes it when the work is done. */
export async function withDatabase(
  run: (database: Connected, config: Place) => Promise<void>,
): Promise<void> {
  const config = readConfig(process.env);
  const database = await joinDatabase(config, migrationTeller(config));
  try {
    await run(database, config);
  } catch (error) {
    throw isLackOfRights(error) ? new SetupError(lackOfRights(error), { cause: error }) : error;
  } finally {
    await database.close();
  }
}

/** Whether PostgreSQL says that the role may not do that, to us or to Prisma. */
function isLackOfRights(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === '42501' || errorText(error).includes('`42501`');
}

const lackOfRights = (error: unknown) =>
  `The role of DATABASE_URL may not do that: ${errorText(error).split('\n').at(-1)}. Name one that may; docs/deployment.md has the rights that commands need.`;

export function sayWaiting(): void {
  process.stderr.write('Waiting for another process that migrates the database.\n');
}

/** Says that a database is about to be migrated: whoever only wanted to look may have named the wrong one. */
export function migrationTeller({ DATABASE_URL, DATA_DIR }: Place): MigrationListener {
  const name = DATABASE_URL === undefined ? DATA_DIR : withoutPassword(DATABASE_URL);
  return {
    waiting: sayWaiting,
    pending({ length }) {
      const migrations = length === 1 ? '1 migration' : `${length} migrations`;
      process.stderr.write(`Applying ${migrations} to the database in ${name} first.\n`);
    },
    repaired(what) {
      process.stderr.write(`Repaired: ${what}\n`);
    },
  };
}
