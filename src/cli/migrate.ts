/** `dovetail migrate`: applies pending migrations, for when the role of the gateway may not. */

import { Command } from 'commander';
import { readConfig } from '../config.ts';
import { findServer } from '../database/connection/find.ts';
import type { DatabaseSettings } from '../database/database.ts';
import { findEmbedded, openEmbedded } from '../database/embedded/embedded.ts';
import { assertOwnFolder } from '../database/embedded/owner.ts';
import { type MigrationListener, migrate } from '../database/migrate.ts';
import { sayBlocked, sayWaiting, settingsOfDatabase } from './database.ts';

export const migrateCommand = new Command('migrate')
  .description('apply pending migrations, which the start of a gateway does as well where its role may')
  .option('--json', 'as JSON')
  .action(async ({ json }: { json?: true }) => {
    const applied = await migrateNamed(readConfig(settingsOfDatabase()));
    if (json) process.stdout.write(`${JSON.stringify({ applied }, null, 2)}\n`);
    else process.stdout.write(applied.map((name) => `${name}\n`).join(''));
    process.stderr.write(
      applied.length === 0 ? 'No migrations are pending.\n' : `Applied ${applied.length}.\n`,
    );
  });

const listener: MigrationListener = {
  waiting: sayWaiting,
  blocked: sayBlocked,
  repaired(what) {
    process.stderr.write(`Repaired: ${what}\n`);
  },
};

async function migrateNamed(config: DatabaseSettings): Promise<string[]> {
  const { DATABASE_URL: url, DATABASE_DIRECT_URL: directUrl, DATA_DIR } = config;
  if (url === undefined) return migrateEmbedded(DATA_DIR);
  // Looks at the server first, which says better what is wrong with it.
  const { direct } = await findServer({ url, directUrl });
  return migrate(direct, undefined, listener);
}

/** Uses the engine of the gateway that has the folder open, or opens it if none has. */
async function migrateEmbedded(dataDir: string): Promise<string[]> {
  const running = await findEmbedded(dataDir);
  if (!running) await assertOwnFolder(dataDir);
  const { connection, close } = running ?? (await openEmbedded(dataDir));
  try {
    return await migrate(connection, undefined, listener);
  } finally {
    await close();
  }
}
