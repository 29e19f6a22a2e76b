/** `dovetail user`: creates and lists users and changes their tier, also while a gateway runs. */

import { Argument, Command, Option } from 'commander';
import { requiredTier } from '../auth/tokens.ts';
import { createUser, findOwner, listUsers, setTier } from '../auth/users.ts';
import { readConfig, shellWord } from '../config/config.ts';
import { owners } from '../server/hooks.ts';
import { locationText, nextCommand, withDatabase } from './database.ts';
import { printJson, printTable, say } from './output.ts';

/** The tiers that a command can set. The service does not list its tiers, and SQL may write any. */
const tiers = ['free', requiredTier];

export const userCommand = new Command('user').description('manage users');

userCommand
  .command('create')
  .description('create a user')
  .argument('<name>', 'what they are called; no two have the same, in whatever case')
  .addOption(
    new Option('--tier <tier>', 'their subscription tier; only ultra may create tokens')
      .choices(tiers)
      .default(requiredTier),
  )
  .option('--json', 'as JSON, with their number')
  .action((name: string, { tier, json }: { tier: string; json?: true }) =>
    withDatabase(
      readConfig(process.env),
      async ({ client }, config) => {
        const id = await createUser(client, name, tier, owners);
        const next =
          tier === requiredTier
            ? `Next: ${nextCommand(config, `token create --user ${shellWord(name)} --name laptop --scope manage`)}`
            : `Only ultra may create tokens: ${nextCommand(config, `user tier ${shellWord(name)} ${requiredTier}`)}`;
        say(`Created user ${id}, ${name}, of the tier ${tier}, in ${locationText(config)}. ${next}`);
        if (json) printJson({ id, username: name, tier });
      },
      { mayCreate: true },
    ),
  );

userCommand
  .command('list')
  .description('list all users, with how many valid tokens they have')
  .option('--json', 'as JSON')
  .action(({ json }: { json?: true }) =>
    withDatabase(readConfig(process.env), async ({ client }, config) => {
      const users = await listUsers(client);
      say(`Users of ${locationText(config)}:`);
      if (json) printJson(users);
      else
        printTable(
          ['ID', 'TIER', 'TOKENS', 'NAME'],
          users.map(({ id, username, tier, tokens }) => [`${id}`, tier ?? 'unknown', `${tokens}`, username]),
        );
      if (users.length > 0) return;
      const [how, command] = (await findOwner(client, owners))?.arrival ?? [
        '. Create one:',
        'user create me',
      ];
      say(`There are none${how} ${nextCommand(config, command)}`);
    }),
  );

userCommand
  .command('tier')
  .description('move a user to another subscription tier')
  .argument('<name>', 'whom')
  .addArgument(
    new Argument(
      '<tier>',
      'where to; only ultra may create tokens, and those that are there stay valid',
    ).choices(tiers),
  )
  .action((name: string, tier: string) =>
    withDatabase(readConfig(process.env), async ({ client }, config) => {
      const tokens = await setTier(client, name, tier, owners);
      const list = nextCommand(config, `token list --user ${shellWord(name)}`);
      const note =
        tier === requiredTier || tokens === 0 ? '' : ` Tokens that are still valid: ${tokens}. See ${list}`;
      say(`${name} has the tier ${tier} now.${note}`);
    }),
  );
