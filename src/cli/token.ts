/** `dovetail token`: creates, lists and revokes API tokens, also while a gateway runs. */

import { Command, InvalidArgumentError } from 'commander';
import {
  complaintAboutTokenName,
  createToken,
  listTokens,
  requiredTier,
  revokeToken,
  TokenError,
} from '../auth/tokens.ts';
import { findTier, isMirror } from '../auth/users.ts';
import { commandLine, shellWord } from '../config/config.ts';
import type { PrismaClient } from '../database/generated/prisma/client.ts';
import { readId } from '../database/ids.ts';
import { errorText } from '../errors.ts';
import { type DatabaseLocation, withClient } from './database.ts';
import { print } from './output.ts';
import { table } from './table.ts';

export const tokenCommand = new Command('token').description('manage API tokens');

tokenCommand
  .command('create')
  .description('create a token; it alone goes to standard output, and is never shown again')
  .requiredOption('--user <username>', 'whose token it is; they need the ultra tier')
  .requiredOption('--name <text>', 'what it is for')
  .option('--json', 'as JSON, with its number')
  .action(({ user, name, json }: { user: string; name: string; json?: true }) =>
    withClient(async (client, config, { pool }) => {
      const { id, token } = await createToken(pool, user, name).catch(async (error: unknown) => {
        throw await withAdvice(error, client, config, user, name);
      });
      const shown = json ? JSON.stringify({ id, user, name, token }, null, 2) : token;
      await print(`${shown}\n`).catch(async (error: unknown) => {
        const isRevoked = await revokeToken(client, id).then(
          () => true,
          () => false,
        );
        const outcome = isRevoked ? 'and is revoked again' : `nor revoked: dovetail token revoke ${id}`;
        throw new TokenError(`Token ${id} could not be written, ${outcome}: ${errorText(error)}`);
      });
      process.stderr.write(`Created token ${id} for ${user}. Keep it: it is not shown again.\n`);
    }),
  );

tokenCommand
  .command('list')
  .description("list a user's tokens, newest first")
  .requiredOption('--user <username>', 'whose tokens')
  .option('--json', 'as JSON')
  .action(({ user, json }: { user: string; json?: true }) =>
    withClient(async (client) => {
      const tokens = await listTokens(client, user);
      process.stdout.write(json ? `${JSON.stringify(tokens, null, 2)}\n` : tableOf(tokens));
    }),
  );

tokenCommand
  .command('revoke')
  .description('revoke a token; it is invalid from then on')
  .argument('<id>', 'its number in the list', parseTokenId)
  .action((id: number) =>
    withClient(async (client) => {
      await revokeToken(client, id);
      process.stderr.write(`Revoked token ${id}.\n`);
    }),
  );

/** The error, which also names the command that lets the user have a token, if the user may not have one. */
async function withAdvice(
  error: unknown,
  client: PrismaClient,
  config: DatabaseLocation,
  user: string,
  name: string,
): Promise<unknown> {
  if (!(error instanceof TokenError) || complaintAboutTokenName(name) !== undefined) return error;
  const tier = await findTier(client, user);
  if (tier === requiredTier) return error;
  if (await isMirror(client))
    return new TokenError(
      `${error.message} This is a mirror, whose accounts come from the upstream: ${commandLine(config, 'user list')}`,
    );
  const next =
    tier === undefined
      ? `user create ${shellWord(user)} --tier ${requiredTier}`
      : `user tier ${shellWord(user)} ${requiredTier}`;
  return new TokenError(`${error.message} To change that: ${commandLine(config, next)}`);
}

function parseTokenId(text: string): number {
  const id = readId(text);
  if (id === undefined) throw new InvalidArgumentError('It takes a number from the list.');
  return id;
}

type Tokens = Awaited<ReturnType<typeof listTokens>>;

function tableOf(tokens: Tokens): string {
  const rows = tokens.map(({ id, name, createdAt, lastUsedAt, revokedAt }) => [
    String(id),
    revokedAt ? 'revoked' : 'active',
    createdAt.toISOString(),
    lastUsedAt?.toISOString() ?? 'never',
    name,
  ]);
  return table(['ID', 'STATE', 'CREATED', 'LAST USED', 'NAME'], rows);
}
