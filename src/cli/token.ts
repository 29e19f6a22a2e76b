/** `dovetail token`: creates, lists and revokes API tokens, also while a gateway runs. */

import { Command } from 'commander';
import { createToken, listTokens, requiredTier, revokeToken, TokenError } from '../auth/tokens.ts';
import { findTier, isMirror } from '../auth/users.ts';
import { shellWord } from '../config/config.ts';
import { nextCommand, parseId, withDatabase } from './database.ts';
import { printJson, printTable, say } from './output.ts';

export const tokenCommand = new Command('token').description('manage API tokens');

tokenCommand
  .command('create')
  .description('create a token; it alone goes to standard output, and is never shown again')
  .requiredOption('--user <username>', 'whose token it is; they need the ultra tier')
  .requiredOption('--name <text>', 'what it is for')
  .option('--json', 'as JSON, with its number')
  .action(({ user, name, json }: { user: string; name: string; json?: true }) =>
    withDatabase(async ({ client, pool }, config) => {
      const { id, token } = await createToken(pool, user, name).catch(async (error: unknown) => {
        const tier = await findTier(client, user);
        if (!(error instanceof TokenError) || tier === requiredTier) throw error;
        if (await isMirror(client))
          throw new TokenError(`${error.message} This is a mirror, whose accounts come from the upstream.`);
        const command =
          tier === undefined
            ? `user create ${shellWord(user)} --tier ${requiredTier}`
            : `user tier ${shellWord(user)} ${requiredTier}`;
        throw new TokenError(`${error.message} To change that: ${nextCommand(config, command)}`);
      });
      if (json) printJson({ id, user, name, token });
      else process.stdout.write(`${token}\n`);
      say(`Created token ${id} for ${user}. Keep it: it is not shown again.`);
    }),
  );

tokenCommand
  .command('list')
  .description("list a user's tokens, newest first")
  .requiredOption('--user <username>', 'whose tokens')
  .option('--json', 'as JSON')
  .action(({ user, json }: { user: string; json?: true }) =>
    withDatabase(async ({ client }) => {
      const tokens = await listTokens(client, user);
      if (json) return printJson(tokens);
      const rows = tokens.map(({ id, name, createdAt, lastUsedAt, revokedAt }) => [
        String(id),
        revokedAt ? 'revoked' : 'active',
        createdAt.toISOString(),
        lastUsedAt?.toISOString() ?? 'never',
        name,
      ]);
      printTable(['ID', 'STATE', 'CREATED', 'LAST USED', 'NAME'], rows);
    }),
  );

tokenCommand
  .command('revoke')
  .description('revoke a token; it is invalid from then on')
  .argument('<id>', 'its number in the list', parseId)
  .action((id: number) =>
    withDatabase(async ({ pool }) => {
      await revokeToken(pool, id);
      say(`Revoked token ${id}.`);
    }),
  );
