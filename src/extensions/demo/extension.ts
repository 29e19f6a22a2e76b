/** The demo account: a database without users gets it, `dovetail demo` loads it, and pages show its token. */

import cluster from 'node:cluster';
import { Command } from 'commander';
import { z } from 'zod';
import { setting } from '../../config/setting.ts';
import type { Extension } from '../../extensionPoints.ts';

const settings = {
  DEMO_ACCOUNT: setting(
    '`local`: an embedded database without users gets the demo account, and pages show its token under HOST and localhost alone, not with HOST 0.0.0.0 or ::. `public`: a database of DATABASE_URL without users gets it too (not with WORKERS), and pages show its token to whoever opens them',
    'local or public',
    z.enum(['local', 'public']).default('local'),
  ),
};

export const demo: Extension<typeof settings> = {
  settings,

  commands: (extensions) => [
    new Command('demo')
      .description(
        'load the demo account into a database without other users, and print its token; on a server a new one, in place of the one printed before',
      )
      .action(async () => (await import('./command.ts')).runDemo(extensions)),
  ],

  starter: {
    command: 'demo',
    offer: 'the demo account, which needs an empty database',
  },

  async open(config, { database, feed, owners, accounts }) {
    const isPublic = config.DEMO_ACCOUNT === 'public' && !cluster.isWorker;
    if (accounts || !(database.embedded || isPublic)) return undefined;
    const { prepareDemo } = await import('./demoAccount.ts');
    const token = await prepareDemo(database, config.DATA_DIR, new Date(), owners);
    if (token === undefined) return undefined;
    const { showToken } = await import('./shownToken.ts');
    return {
      shownToken: showToken(token, config, { sql: database.sql, feed }),
      lines: [['Token', `${token}  (of the demo account)`]],
    };
  },
};
