/** `dovetail doctor`: finds what keeps a gateway from running well. It runs the checks that the other extensions bring. */

import { Command } from 'commander';
import type { Extension } from '../../extensionPoints.ts';

export const doctor: Extension = {
  settings: {},
  commands: (extensions) => [
    new Command('doctor')
      .description('check settings, database, port and the rest, and say what to do; changes nothing')
      .option('--json', 'as JSON')
      .action(async ({ json = false }: { json?: boolean }) =>
        (await import('./checks.ts')).runDoctor(extensions, json),
      ),
  ],
};
