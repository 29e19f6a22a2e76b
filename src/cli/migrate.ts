/** `dovetail migrate`: applies pending migrations, for when the role of the gateway may not. */

import { Command } from 'commander';
import { readConfig } from '../config.ts';
import { checkServer } from '../database/database.ts';
import { findEmbedded, openEmbedded } from '../database/embedded/embedded.ts';
import { type MigrationListener, migrate } from '../database/migrate.ts';
import { sayWaiting } from './database.ts';

export const migrateCommand = new Command('migrate')
  .description('apply pending migrations, which the start of a gateway does as well where its role may')
  .option('--json', 'as JSON')
  .action(async ({ json }: { json?: true }) => {
    const { DATABASE_URL, DATA_DIR } = readConfig(process.env);
    const applied =
      DATABASE_URL === undefined ? await migrateEmbedded(DATA_DIR) : await migrateServer(DATABASE_URL);
    if (json) process.stdout.write(`${JSON.stringify({ applied }, null, 2)}\n`);
    else process.stdout.write(applied.map((name) => `${name}\n`).join(''));
    process.stderr.write(
      applied.length === 0 ? 'No migrations are pending.\n' : `Applied ${applied.length}.\n`,
    );
  });

const listener: MigrationListener = {
  waiting: sayWaiting,
  repaired(what) {
    process.stderr.write(`Repaired: ${what}\n`);
  },
};

/** Looks at the server first, which says better what is wrong with it. */
async function migrateServer(url: string): Promise<string[]> {
  await checkServer(url);
  return migrate({ connectionString: url }, undefined, listener);
}

/** Uses the engine of the gateway that has the folder open, or opens it if none has. */
async function migrateEmbedded(dataDir: string): Promise<string[]> {
  const { connection, close } = (await findEmbedded(dataDir)) ?? (await openEmbedded(dataDir));
  try {
    return await migrate(connection, undefined, listener);
  } finally {
    await close();
  }
}
