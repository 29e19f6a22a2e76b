/** `dovetail token`: creates, lists, rotates and revokes API tokens, also while a gateway runs. */

import { Command, InvalidArgumentError, Option } from 'commander';
import { type Scope, scopes } from '../auth/scopes.ts';
import {
  createToken,
  listTokens,
  requiredTier,
  revokeToken,
  rotateToken,
  stateOf,
  TokenError,
} from '../auth/tokens.ts';
import { findOwner, findTier } from '../auth/users.ts';
import { readConfig, shellWord } from '../config/config.ts';
import { SetupError } from '../errors.ts';
import { isoInstant } from '../schema/isoInstant.ts';
import { owners } from '../server/hooks.ts';
import { parseId } from './arguments.ts';
import { nextCommand, withDatabase } from './database.ts';
import { printJson, printTable, say } from './output.ts';

const unitsInSeconds = new Map([
  ['s', 1],
  ['m', 60],
  ['h', 3_600],
  ['d', 86_400],
]);

/** The milliseconds of a duration such as 90d; undefined for any other text. */
function readDuration(text: string): number | undefined {
  const [, amount, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const seconds = unitsInSeconds.get(unit);
  return seconds === undefined ? undefined : Number(amount) * seconds * 1_000;
}

function parseDuration(text: string): number {
  const duration = text === '0' ? 0 : readDuration(text);
  if (duration === undefined) throw new InvalidArgumentError('It takes a duration such as 30m, 12h or 7d.');
  return duration;
}

function parseExpiry(text: string): Date {
  const duration = readDuration(text);
  if (duration !== undefined) return new Date(Date.now() + duration);
  const instant = isoInstant.safeParse(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text);
  if (instant.success) return new Date(instant.data);
  throw new InvalidArgumentError(
    'It takes a date such as 2027-01-31, a time such as 2027-01-31T12:00:00Z, or a duration such as 90d.',
  );
}

interface CreateOptions {
  readonly user: string;
  readonly name: string;
  readonly scope: Scope;
  readonly expires?: Date;
  readonly json?: true;
}

export const tokenCommand = new Command('token').description('manage API tokens');

tokenCommand
  .command('create')
  .description('create a token; it alone goes to standard output, and is never shown again')
  .requiredOption('--user <username>', 'whose token it is; they need the ultra tier')
  .requiredOption('--name <text>', 'what it is for')
  .addOption(
    new Option('--scope <scope>', 'what it may do; each scope includes the ones before it')
      .choices(scopes)
      .default('activate'),
  )
  .option('--expires <when>', 'a date, a time with an offset, or a duration such as 90d', parseExpiry)
  .option('--json', 'as JSON, with its number')
  .action(({ user, name, scope, expires: expiresAt, json }: CreateOptions) =>
    withDatabase(readConfig(process.env), async ({ client, pool }, config) => {
      const { id, token } = await createToken(pool, user, name, { scope, expiresAt }).catch(
        async (error: unknown) => {
          // A wrong name or date has nothing to do with the user.
          if (!(error instanceof TokenError) || error.extensions.argument !== undefined) throw error;
          const tier = await findTier(client, user);
          if (tier === requiredTier) throw error;
          const owner = await findOwner(client, owners);
          if (owner) throw new SetupError(`${error.message}. ${owner.note}`);
          const command =
            tier === undefined
              ? `user create ${shellWord(user)} --tier ${requiredTier}`
              : `user tier ${shellWord(user)} ${requiredTier}`;
          throw new SetupError(`${error.message}. To change that: ${nextCommand(config, command)}`);
        },
      );
      if (json) printJson({ id, user, name, token });
      else process.stdout.write(`${token}\n`);
      const more =
        scope === 'manage' ? '' : ' To create others in the console, a token needs --scope manage.';
      say(`Created token ${id} for ${user}, with the scope ${scope}. Keep it: it is not shown again.${more}`);
    }),
  );

tokenCommand
  .command('list')
  .description("list a user's tokens, newest first")
  .requiredOption('--user <username>', 'whose tokens')
  .option('--json', 'as JSON')
  .action(({ user, json }: { user: string; json?: true }) =>
    withDatabase(readConfig(process.env), async ({ sql }) => {
      const listed = await listTokens(sql, user);
      const tokens = listed.map((token) => ({ ...token, state: stateOf(token) }));
      if (json) return printJson(tokens);
      const rows = tokens.map(({ state, ...token }) => [
        String(token.id),
        state,
        token.scope,
        token.createdAt.toISOString(),
        token.lastUsedAt?.toISOString() ?? 'never',
        token.expiresAt?.toISOString() ?? 'never',
        token.prefix ?? 'unknown',
        token.name,
      ]);
      printTable(['ID', 'STATE', 'SCOPE', 'CREATED', 'LAST USED', 'EXPIRES', 'BEGINS WITH', 'NAME'], rows);
    }),
  );

tokenCommand
  .command('revoke')
  .description('revoke a token; it is invalid from then on')
  .argument('<id>', 'its number in the list', parseId)
  .action((id: number) =>
    withDatabase(readConfig(process.env), async ({ pool }) => {
      await revokeToken(pool, id);
      say(`Revoked token ${id}.`);
    }),
  );

tokenCommand
  .command('rotate')
  .description('give a token a new secret, which alone goes to standard output and is never shown again')
  .argument('<id>', 'its number in the list', parseId)
  .addOption(
    new Option('--keep <duration>', 'how long the secret before stays valid; 0 for not at all')
      .argParser(parseDuration)
      .default(3_600_000, '1h'),
  )
  .action((id: number, { keep }: { keep: number }) =>
    withDatabase(readConfig(process.env), async ({ pool }) => {
      const { token } = await rotateToken(pool, id, keep);
      process.stdout.write(`${token}\n`);
      const until = new Date(Date.now() + keep).toISOString();
      const end = keep === 0 ? 'is invalid now' : `is valid until ${until}, unless the token expires before`;
      say(`Rotated token ${id}. Keep the new secret: it is not shown again. The one before ${end}.`);
    }),
  );
