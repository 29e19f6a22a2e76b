/** The demo account in a database of a test, which uses it as an account with records of every kind. */

import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mock } from 'node:test';
import type { ConnectedDatabase } from '../../src/database/database.ts';
import type { GatewayParts } from '../../src/extensionPoints.ts';
import { extensions } from '../../src/extensions/extensions.ts';
import { readConfig } from './settings.ts';

/**
 * Loads the demo account, as a start does.
 * @param folder for the token. By default a new one.
 * @param now the time of loading, to which all times of the data are relative.
 * @returns the token of the account.
 */
export async function loadDemo(
  { pool, sql }: Pick<ConnectedDatabase, 'pool' | 'sql'>,
  folder?: string,
  now?: Date,
): Promise<string> {
  const DATA_DIR = folder ?? (await mkdtemp(join(tmpdir(), 'dovetail-demo-')));
  const config = readConfig({ DEMO_ACCOUNT: 'public', DATA_DIR });
  const feed = { subscribe: () => () => {} };
  // The parts of a gateway that are used.
  const parts = { database: { pool, sql }, feed, owners: [], accounts: undefined } as unknown as GatewayParts;
  if (now) mock.timers.enable({ apis: ['Date'], now });
  try {
    const demo = extensions.find(({ settings }) => 'DEMO_ACCOUNT' in settings);
    const hooks = await demo?.open?.(config, parts);
    return hooks?.shownToken?.token ?? '';
  } finally {
    if (now) mock.timers.reset();
  }
}
