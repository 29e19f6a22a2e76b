/** The commands of an upstream. What they need is loaded when they run. */

import { Command } from 'commander';
import { parseId } from '../../../cli/arguments.ts';
import type { SyncFlags } from './sync.ts';

export const syncCommand = new Command('sync')
  .description('mirror the account of the token in UPSTREAM_TOKEN; run again to bring the mirror up to date')
  .option(
    '--from <base_url>',
    'where the account is, such as https://example.com/api/v1 (default: UPSTREAM_URL)',
  )
  .option('--full', 'read every record again, and remove sessions that are gone')
  .option('--json', 'what was done, as JSON')
  .action(async (flags: SyncFlags) => (await import('./sync.ts')).runSync(flags));

export const forgetCommand = new Command('forget')
  .description('remove an account from a mirror, with its tokens and all that it alone has')
  .option('--user <name>', 'what the account is called')
  .option('--id <id>', 'its id, instead of its name', parseId)
  .option('--json', 'the account, as JSON')
  .action(({ user, id, json }: { user?: string; id?: number; json?: true }, command: Command) => {
    if ((user === undefined) === (id === undefined))
      command.error('error: name the account, by --user or by --id');
    return import('./forget.ts').then(({ runForget }) => runForget({ user, id, json }));
  });
