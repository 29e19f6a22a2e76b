/** `dovetail token`: creates, lists and revokes API tokens, also while a gateway runs. */

import { Command, InvalidArgumentError } from 'commander';
import { createToken, listTokens, revokeToken } from '../auth/tokens.ts';
import { readConfig } from '../config.ts';
import { joinDatabase } from '../database/database.ts';
import type { PrismaClient } from '../database/generated/prisma/client.ts';
import { readId } from '../database/ids.ts';

export const tokenCommand = new Command('token').description('manage API tokens');

tokenCommand
  .command('create')
  .description('create a token; it alone goes to standard output, and is never shown again')
  .requiredOption('--user <username>', 'whose token it is; they need the ultra tier')
  .requiredOption('--name <text>', 'what it is for')
  .option('--json', 'as JSON, with its number')
  .action(({ user, name, json }: { user: string; name: string; json?: true }) =>
    withDatabase(async (database) => {
      const { id, token } = await createToken(database, user, name);
      process.stderr.write(`Created token ${id} for ${user}. Keep it: it is not shown again.\n`);
      process.stdout.write(json ? `${JSON.stringify({ id, user, name, token }, null, 2)}\n` : `${token}\n`);
    }),
  );

tokenCommand
  .command('list')
  .description("list a user's tokens, newest first")
  .requiredOption('--user <username>', 'whose tokens')
  .option('--json', 'as JSON')
  .action(({ user, json }: { user: string; json?: true }) =>
    withDatabase(async (database) => {
      const tokens = await listTokens(database, user);
      process.stdout.write(json ? `${JSON.stringify(tokens, null, 2)}\n` : table(tokens));
    }),
  );

tokenCommand
  .command('revoke')
  .description('revoke a token; it is invalid from then on')
  .argument('<id>', 'its number in the list', parseTokenId)
  .action((id: number) =>
    withDatabase(async (database) => {
      await revokeToken(database, id);
      process.stderr.write(`Revoked token ${id}.\n`);
    }),
  );

async function withDatabase(run: (database: PrismaClient) => Promise<void>): Promise<void> {
  const database = await joinDatabase(readConfig(process.env));
  try {
    const { openClient } = await import('../database/client.ts');
    await run(openClient(database.pool));
  } finally {
    await database.close();
  }
}

function parseTokenId(text: string): number {
  const id = readId(text);
  if (id === undefined) throw new InvalidArgumentError('It takes a number from the list.');
  return id;
}

type Tokens = Awaited<ReturnType<typeof listTokens>>;

function table(tokens: Tokens): string {
  const rows = tokens.map(({ id, name, createdAt, lastUsedAt, revokedAt }) => [
    String(id),
    revokedAt ? 'revoked' : 'active',
    createdAt.toISOString(),
    lastUsedAt?.toISOString() ?? 'never',
    name,
  ]);
  const lines = [['ID', 'STATE', 'CREATED', 'LAST USED', 'NAME'], ...rows];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines
    .map((line) => `${line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}\n`)
    .join('');
}
