/** `dovetail demo`: gives a database the demo account, also while a gateway runs. */

import { Command } from 'commander';
import { commandLine } from '../config.ts';
import { prepareDemo } from '../demo/demoAccount.ts';
import { demoUsername } from '../demo/demoData.ts';
import { checkOnlyDemo, resetDemo } from '../demo/resetDemo.ts';
import { SetupError } from '../errors.ts';
import { withDatabase } from './database.ts';

export const demoCommand = new Command('demo')
  .description('load the demo account into a database without other users, and print its token')
  .option('--reset', 'load it anew, without what was changed since; its tokens stay valid')
  .action(({ reset }: { reset?: true }) =>
    withDatabase(async (database, config) => {
      const { DATABASE_URL, DATA_DIR } = config;
      await checkOnlyDemo(database.pool);
      if (reset) await resetDemo(database.pool);
      const onServer = DATABASE_URL !== undefined;
      const token = await prepareDemo(database, onServer ? undefined : DATA_DIR, {
        keepsTokens: onServer && reset === true,
      });
      const state = `The demo account is ${reset ? 'as it was at first' : 'there'}`;
      // Without a folder to keep it in, each token is printed once.
      const note = onServer && !reset ? ', in place of the one that was printed before' : '';
      if (token === undefined)
        throw new SetupError(
          `${state}, but can have no new token: it has five already, or not the ultra tier any more. To see which: ${commandLine(config, `token list --user ${demoUsername}`)}`,
        );
      process.stderr.write(`${state}. Its token${note}:\n`);
      process.stdout.write(`${token}\n`);
    }),
  );
