/** `dovetail migrate`: applies pending migrations, for a gateway whose role may not do so. */

import { Command } from 'commander';
import { readConfig } from '../config/config.ts';
import { findServer } from '../database/connection/find.ts';
import type { DatabaseSettings } from '../database/database.ts';
import { findEmbedded, openEmbedded } from '../database/embedded/embedded.ts';
import { assertOwn } from '../database/embedded/owner.ts';
import { migrate } from '../database/migrate.ts';
import { databaseEnvironment, migrationReporter } from './database.ts';

export const migrateCommand = new Command('migrate')
  .description('apply pending migrations, which the start of a gateway does as well where its role may')
  .option('--json', 'as JSON')
  .action(async ({ json }: { json?: true }) => {
    const applied = await migrateConfigured(readConfig(databaseEnvironment()));
    if (json) process.stdout.write(`${JSON.stringify({ applied }, null, 2)}\n`);
    else process.stdout.write(applied.map((name) => `${name}\n`).join(''));
    process.stderr.write(
      applied.length === 0 ? 'No migrations are pending.\n' : `Applied ${applied.length}.\n`,
    );
  });

async function migrateConfigured(config: DatabaseSettings): Promise<string[]> {
  const { DATABASE_URL: url, DATABASE_DIRECT_URL: directUrl, DATA_DIR } = config;
  if (url === undefined) return migrateEmbedded(DATA_DIR);
  // Connects to the server first, since `findServer` gives better error messages.
  const { direct } = await findServer({ url, directUrl });
  return migrate(direct, undefined, migrationReporter);
}

/** Migrates through the gateway that has the folder open, or opens the folder if none has. */
async function migrateEmbedded(dataDir: string): Promise<string[]> {
  const running = await findEmbedded(dataDir);
  if (running) return migrate(running, undefined, migrationReporter);
  await assertOwn(dataDir, true);
  const { connection, close } = await openEmbedded(dataDir);
  try {
    return await migrate(connection, undefined, migrationReporter);
  } finally {
    await close();
  }
}
