/** `dovetail forget`: removes an account from a mirror, also while a gateway runs. */

import { Command } from 'commander';
import { parseId, withDatabase } from '../../../cli/database.ts';
import { printJson, say } from '../../../cli/output.ts';
import { forgetAccount } from '../mirror/forget.ts';
import { printable } from '../mirror/report.ts';

export const forgetCommand = new Command('forget')
  .description('remove an account from a mirror, with its tokens and all that it alone has')
  .option('--user <name>', 'what the account is called')
  .option('--id <id>', 'its id, instead of its name', parseId)
  .option('--json', 'what was removed, as JSON')
  .action(({ user, id, json }: { user?: string; id?: number; json?: true }, command: Command) => {
    if ((user === undefined) === (id === undefined))
      command.error('error: name the account, by --user or by --id');
    return withDatabase(async ({ pool }) => {
      const forgotten = await forgetAccount(pool, id === undefined ? { username: user ?? '' } : { id });
      const { username, removed, left } = forgotten;
      const parts = Object.entries(removed)
        .filter(([, number]) => number > 0)
        .map(([name, number]) => `${number} ${name}`);
      const what = parts.length > 0 ? ` with ${parts.join(', ')}` : '';
      const shared = left === 0 ? '' : ` Others keep ${left} of its templates, which they have imported.`;
      say(`Removed the account ${printable(username)} (id ${forgotten.id})${what}.${shared}`);
      if (json) printJson(forgotten);
    });
  });
