/** `dovetail forget`: removes an account from a mirror, also while a gateway runs. */

import { Command, InvalidArgumentError } from 'commander';
import { readId } from '../database/ids.ts';
import { type Forgotten, forgetAccount } from '../mirror/forget.ts';
import { printable } from '../mirror/report.ts';
import { withDatabase } from './database.ts';

export const forgetCommand = new Command('forget')
  .description('remove an account from a mirror, with its tokens and all that it alone has')
  .option('--user <name>', 'what the account is called')
  .option('--id <id>', 'its id, instead of its name', parseId)
  .option('--json', 'what was removed, as JSON')
  .action(
    async ({ user, id, json = false }: { user?: string; id?: number; json?: boolean }, command: Command) => {
      if ((user === undefined) === (id === undefined))
        command.error('error: name the account, by --user or by --id');
      await withDatabase(async ({ pool }) => {
        const forgotten = await forgetAccount(pool, id === undefined ? { username: user ?? '' } : { id });
        process.stderr.write(`${describe(forgotten)}\n`);
        if (json) process.stdout.write(`${JSON.stringify(forgotten, null, 2)}\n`);
      });
    },
  );

function describe({ id, username, removed, left }: Forgotten): string {
  const parts = Object.entries(removed)
    .filter(([, number]) => number > 0)
    .map(([name, number]) => `${number} ${name}`);
  const shared = left === 0 ? '' : ` Others keep ${left} of its templates, which they have imported.`;
  return `Removed the account ${printable(username)} (id ${id})${parts.length > 0 ? ` with ${parts.join(', ')}` : ''}.${shared}`;
}

function parseId(text: string): number {
  const id = readId(text);
  if (id === undefined) throw new InvalidArgumentError('It takes an id such as 7.');
  return id;
}
