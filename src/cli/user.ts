/** `dovetail user`: creates and lists users and changes their tier, also while a gateway runs. */

import { Command } from 'commander';
import { requiredTier } from '../auth/tokens.ts';
import { createUser, isMirror, type ListedUser, listUsers, setTier } from '../auth/users.ts';
import { commandLine, shellWord } from '../config/config.ts';
import { locationText, withClient } from './database.ts';
import { table } from './table.ts';

export const userCommand = new Command('user').description('manage users');

userCommand
  .command('create')
  .description('create a user')
  .argument('<name>', 'what they are called; no two have the same, in whatever case')
  .option('--tier <tier>', 'their subscription tier; only ultra may create tokens', requiredTier)
  .option('--json', 'as JSON, with their number')
  .action((name: string, { tier, json }: { tier: string; json?: true }) =>
    withClient(
      async (client, config) => {
        const id = await createUser(client, name, tier);
        const next =
          tier === requiredTier
            ? `token create --user ${shellWord(name)} --name laptop`
            : `user tier ${shellWord(name)} ${requiredTier}`;
        const why = tier === requiredTier ? 'Next' : 'Only ultra may create tokens';
        process.stderr.write(
          `Created user ${id}, ${name}, of the tier ${tier}, in ${locationText(config)}. ${why}: ${commandLine(config, next)}\n`,
        );
        if (json) process.stdout.write(`${JSON.stringify({ id, username: name, tier }, null, 2)}\n`);
      },
      { mayCreate: true },
    ),
  );

userCommand
  .command('list')
  .description('list all users, with how many valid tokens they have')
  .option('--json', 'as JSON')
  .action(({ json }: { json?: true }) =>
    withClient(async (client, config) => {
      const users = await listUsers(client);
      process.stderr.write(`Users of ${locationText(config)}:\n`);
      process.stdout.write(json ? `${JSON.stringify(users, null, 2)}\n` : tableOf(users));
      if (users.length > 0) return;
      process.stderr.write(
        (await isMirror(client))
          ? `There are none: an account comes to a mirror with its first request, or by ${commandLine(config, 'sync')}\n`
          : `There are none. Create one: ${commandLine(config, 'user create me')}\n`,
      );
    }),
  );

userCommand
  .command('tier')
  .description('move a user to another subscription tier')
  .argument('<name>', 'whom')
  .argument('<tier>', 'where to; only ultra may create tokens, and those that are there stay valid')
  .action((name: string, tier: string) =>
    withClient(async (client, config) => {
      const tokens = await setTier(client, name, tier);
      const list = commandLine(config, `token list --user ${shellWord(name)}`);
      const note =
        tier === requiredTier || tokens === 0 ? '' : ` Tokens that are still valid: ${tokens}. See ${list}`;
      process.stderr.write(`${name} has the tier ${tier} now.${note}\n`);
    }),
  );

const tableOf = (users: readonly ListedUser[]) =>
  table(
    ['ID', 'TIER', 'TOKENS', 'NAME'],
    users.map(({ id, username, tier, tokens }) => [String(id), tier ?? 'unknown', String(tokens), username]),
  );
