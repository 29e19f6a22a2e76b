/**
 * `dovetail dump` and `dovetail load`: all data of a database as a file of SQL, and such a file into an empty database, each embedded or
 * on a server. To replace it between servers: run `pg_dump` and `pg_restore`.
 */

import { Command } from 'commander';
import { readConfig } from '../../config/config.ts';
import type { Extension } from '../../extensionPoints.ts';

export const dump: Extension = {
  settings: {},
  commands: () => [
    new Command('dump')
      .description('write all data into a file, as SQL; also while a gateway runs')
      .argument(
        '[file]',
        'the file, which is replaced as soon as the dump is complete (default: standard output)',
      )
      .action(async (file?: string) => (await import('./dump.ts')).runDump(readConfig(process.env), file)),
    new Command('load')
      .description('load a dump into an empty database, all of it or nothing')
      .argument('<file>', 'what dump has written; - is standard input')
      .action(async (file: string) => (await import('./load.ts')).runLoad(readConfig(process.env), file)),
  ],
};
