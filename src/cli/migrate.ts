/** `dovetail migrate`: applies pending migrations. A gateway whose role may not do so needs it. */

import { Command } from 'commander';
import { readConfig } from '../config/config.ts';
import { joinDatabase } from '../database/database.ts';
import { createMigrationReporter } from './database.ts';
import { printJson, say } from './output.ts';

export const migrateCommand = new Command('migrate')
  .description('apply pending migrations, which the start of a gateway does as well where its role may')
  .option('--json', 'as JSON')
  .action(async ({ json }: { json?: true }) => {
    const config = readConfig(process.env);
    let applied: readonly string[] = [];
    const { waiting } = createMigrationReporter(config);
    const pending = (names: readonly string[]) => {
      applied = names;
    };
    // A gateway that has an embedded database open has migrated it.
    await (await joinDatabase(config, { waiting, pending })).close();
    if (json) printJson({ applied });
    else process.stdout.write(applied.map((name) => `${name}\n`).join(''));
    say(applied.length === 0 ? 'No migrations are pending.' : `Applied ${applied.length}.`);
  });
