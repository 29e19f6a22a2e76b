/** `dovetail demo`: gives a database the demo account, also while a gateway runs. */

import { maxActiveTokens } from '../../auth/tokens.ts';
import { nextCommand, withDatabase } from '../../cli/database.ts';
import { say } from '../../cli/output.ts';
import { readConfig } from '../../config/config.ts';
import { SetupError } from '../../errors.ts';
import { type Extension, ownersOf } from '../../extensionPoints.ts';
import { checkOnlyDemo, prepareDemo } from './demoAccount.ts';
import { demoUsername } from './demoData.ts';

export async function runDemo(extensions: readonly Extension[]): Promise<void> {
  const owners = ownersOf(extensions);
  await withDatabase(
    readConfig(process.env),
    async (database, config) => {
      const { DATABASE_URL, DATA_DIR } = config;
      await checkOnlyDemo(database.pool, owners);
      const onServer = DATABASE_URL !== undefined;
      const state = 'The demo account is there';
      // The token for a server's database is stored nowhere, so it is printed this once.
      const token = await prepareDemo(database, onServer ? undefined : DATA_DIR, new Date(), owners);
      if (token === undefined)
        throw new SetupError(
          `${state}, but can have no new token: it has ${maxActiveTokens}, the most that there may be, or is not of the tier ultra. See ${nextCommand(config, `token list --user ${demoUsername}`)}`,
        );
      const note = onServer ? ', in place of any that was printed before' : '';
      say(`${state}. Its token${note}:`);
      process.stdout.write(`${token}\n`);
    },
    { mayCreate: true },
  );
}
