import { expect, it } from 'vitest';
import { feedOptions } from '../../../src/server/hooks.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import { complaintAbout, readConfig } from '../../support/settings.ts';
import { databaseWith } from '../../support/setUp.ts';

it('rejects CHANGE_FEED=logical for the embedded engine', () => {
  expect(complaintAbout({ CHANGE_FEED: 'logical', DATABASE_URL: '' })).toBe(
    'CHANGE_FEED is logical, but the embedded engine has no logical decoding: set DATABASE_URL, or unset CHANGE_FEED.',
  );
});

it('rejects CHANGE_FEED=logical for a server without logical decoding, which other values leave as it is', async () => {
  const { database } = await databaseWith();
  const DATABASE_URL = String(database.pool.options.connectionString);
  const choose = (CHANGE_FEED: string) =>
    feedOptions(readConfig({ DATABASE_URL, CHANGE_FEED }), createLogger('silent', { write() {} })).choose({
      direct: { connectionString: DATABASE_URL },
      decodes: false,
    });
  await choose('auto');
  await choose('notify');
  await expect(database.openChangeFeed({ choose: () => choose('logical') })).rejects.toThrow(
    'available: the server has wal_level = replica.',
  );
});
