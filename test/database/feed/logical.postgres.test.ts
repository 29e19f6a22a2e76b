/** The change feed by messages in the log of a server: what is different from notifications. */

import { tmpdir } from 'node:os';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openDatabase } from '../../../src/database/database.ts';
import type { Change, ChangeFeed } from '../../../src/database/feed/changeFeed.ts';
import { listenToServer } from '../../../src/database/feed/server.ts';
import { type Account, createAccount } from '../../support/accounts.ts';
import { type TestDatabase, withClient } from '../../support/gateway.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres.ts';

let server: PostgresServer;
let database: TestDatabase;
let feed: ChangeFeed;
let alice: Account;

beforeAll(async () => {
  server = await startPostgres({ wal_level: 'logical' });
  await server.createDatabase('logical');
  const url = `${server.url}/logical`;
  database = withClient(await openDatabase({ DATABASE_URL: url, DATA_DIR: tmpdir() }));
  await database.pool.query(`CREATE PUBLICATION dovetail; SELECT announce_by('logical')`);
  alice = await createAccount(database.client, 'alice');
  feed = await listenToServer({ connectionString: url });
});
afterAll(async () => {
  await feed?.close();
  await database?.close();
  await server?.stop();
});

it('tells of changes', async () => {
  expect(feed.listening).toBe(true);
  expect(feed.kind).toBe('logical');
  const changes: Change[] = [];
  feed.subscribe((change) => changes.push(change));
  await database.pool.query('UPDATE "User" SET rank = 7 WHERE id = $1', [alice.userId]);
  await expect.poll(() => changes).toEqual([{ kind: 'user', userId: alice.userId, table: 'User' }]);
  expect(feed.trusts(alice.userId)).toBe(true);
});
