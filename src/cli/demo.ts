/** `dovetail demo`: gives a database the demo account, also while a gateway runs. */

import { Command } from 'commander';
import { maxActiveTokens, requiredTier } from '../auth/tokens.ts';
import { findTier } from '../auth/users.ts';
import { commandLine } from '../config/config.ts';
import type { PrismaClient } from '../database/generated/prisma/client.ts';
import { hasDemoToken, prepareDemo } from '../demo/demoAccount.ts';
import { demoUsername } from '../demo/demoData.ts';
import { checkOnlyDemo, resetDemo } from '../demo/resetDemo.ts';
import { SetupError } from '../errors.ts';
import { type DatabaseLocation, withClient } from './database.ts';

export const demoCommand = new Command('demo')
  .description(
    'load the demo account into a database without other users, and print its token; on a server a new one, in place of the one printed before',
  )
  .option('--reset', 'load it anew, without what was changed since; its tokens stay valid')
  .action(({ reset }: { reset?: true }) =>
    withClient(
      async (client, config, database) => {
        const { DATABASE_URL, DATA_DIR } = config;
        await checkOnlyDemo(database.pool);
        if (reset) await resetDemo(database.pool);
        const onServer = DATABASE_URL !== undefined;
        // Of a server's database the token is not stored in a folder, so it is printed this once.
        const replacesToken = onServer && !reset && (await hasDemoToken(client));
        const token = await prepareDemo(database, onServer ? undefined : DATA_DIR, {
          keepsTokens: onServer && reset === true,
        });
        const state = `The demo account is ${reset ? 'as it was at first' : 'there'}`;
        const note = replacesToken ? ', in place of the one that was printed before' : '';
        if (token === undefined) throw new SetupError(`${state}, but ${await whyNoToken(client, config)}`);
        process.stderr.write(`${state}. Its token${note}:\n`);
        process.stdout.write(`${token}\n`);
      },
      { mayCreate: true },
    ),
  );

/** Why the demo account can have no new token, and what to do about it. */
async function whyNoToken(client: PrismaClient, place: DatabaseLocation): Promise<string> {
  const isUltra = (await findTier(client, demoUsername)) === requiredTier;
  const [reason, next] = isUltra
    ? [
        `it has ${maxActiveTokens}, the most that there may be. Revoke one of them`,
        `token list --user ${demoUsername}`,
      ]
    : ['only the tier ultra may have any. Move it there', `user tier ${demoUsername} ultra`];
  return `it can have no new token: ${reason}: ${commandLine(place, next)}`;
}
