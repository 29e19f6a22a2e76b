/** `dovetail demo`: gives a database the demo account, also while a gateway runs. */

import { Command } from 'commander';
import { prepareDemo } from '../demo/demoAccount.ts';
import { checkOnlyDemo, resetDemo } from '../demo/resetDemo.ts';
import { SetupError } from '../errors.ts';
import { withDatabase } from './database.ts';

export const demoCommand = new Command('demo')
  .description('load the demo account into a database without other users, and print its token')
  .option('--reset', 'load it anew, without what was changed since; its tokens stay valid')
  .action(({ reset }: { reset?: true }) =>
    withDatabase(async (database, { DATABASE_URL, DATA_DIR }) => {
      await checkOnlyDemo(database.pool);
      if (reset) await resetDemo(database.pool);
      const token = await prepareDemo(database, DATABASE_URL === undefined ? DATA_DIR : undefined);
      if (token === undefined)
        throw new SetupError(
          'The demo account can have no token: it has five already, or not the ultra tier any more. --reset loads it anew.',
        );
      process.stderr.write(`The demo account is ${reset ? 'as it was at first' : 'there'}. Its token:\n`);
      process.stdout.write(`${token}\n`);
    }),
  );
