/** The change feed by messages in the write-ahead log of a server: what differs from notifications. */

import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { findServer } from '../../../src/database/connection.ts';
import type { Ask, ChangeFeed } from '../../../src/database/feed/changeFeed.ts';
import { listenToServer } from '../../../src/database/feed/notify.ts';
import { migrate } from '../../../src/database/migrate.ts';
import { chooseAnnounceMode } from '../../../src/extensions/logFeed/announceMode.ts';
import { awaitWriters, isOver, readMessages } from '../../../src/extensions/logFeed/log.ts';
import { announceBy, endReaders } from '../../coherence/writes.ts';
import { type Account, createAccount } from '../../support/accounts.ts';
import { openAt } from '../../support/gateway.ts';
import { startPostgres } from '../../support/postgres.ts';
import { holdTransaction } from '../../support/setUp.ts';
import { openTcpProxy } from '../../support/tcpProxy.ts';

const server = await startPostgres({ wal_level: 'logical', max_replication_slots: '4' });
await server.createDatabase('logical');
const direct = { connectionString: `${server.url}/logical` };
const database = await openAt(direct.connectionString);
const alice = await createAccount(database.client, 'alice');
const bob = await createAccount(database.client, 'bob');
expect(await findServer({ url: direct.connectionString })).toMatchObject({ decodes: true });
expect(await chooseAnnounceMode('logical', direct)).toEqual({ mode: 'logical' });
const feed = await listenToServer(direct, direct, { readLog: readMessages });
let announced: string[] = [];
feed.subscribe((change) =>
  announced.push(change.kind === 'user' ? `${change.userId} ${change.table}` : `all, ${feed.listening}`),
);
afterAll(async () => {
  await feed.close();
  await database.close();
  await server.stop();
});

const ask: Ask = async (text, values) => (await database.pool.query(text, values)).rows;

const rankUp = ({ userId }: Account) =>
  database.pool.query('UPDATE "User" SET rank = coalesce(rank, 0) + 1 WHERE id = $1 RETURNING rank', [
    userId,
  ]);

const isListening = (mode: ChangeFeed['mode']) =>
  expect.poll(() => [feed.listening, feed.mode], { interval: 5 }).toEqual([true, mode]);

/** Makes commits wait, once they are in the log, for a standby that does not exist. */
async function holdCommits(): Promise<() => Promise<void>> {
  const set = async (sql: string) => {
    await database.pool.query(sql);
    await database.pool.query('SELECT pg_reload_conf()');
  };
  await set(`ALTER SYSTEM SET synchronous_standby_names = 'nobody'`);
  const commit = () => database.pool.query(`SELECT pg_logical_emit_message(true, 'nobody', '')`);
  // Until one has to wait.
  while (await Promise.race([commit().then(() => true), sleep(50, false)]));
  const release = () => set('ALTER SYSTEM RESET synchronous_standby_names');
  // Also when the test fails.
  onTestFinished(release);
  return release;
}

it('the feed announces one change of a transaction once, and both owners of a row that came from one to the other', async () => {
  await isListening('logical');
  announced = [];
  await database.pool.query(
    `INSERT INTO "LkbxDevice" ("bubbleId", "ownerId") SELECT 'many' || n, ${alice.userId} FROM generate_series(1, 100) n`,
  );
  await database.pool.query(`UPDATE "LkbxDevice" SET locked = true WHERE "bubbleId" LIKE 'many%'`);
  await database.pool.query(
    `UPDATE "LkbxDevice" SET "ownerId" = ${bob.userId} WHERE "bubbleId" LIKE 'many%'`,
  );
  await rankUp(alice);
  await expect.poll(() => announced.at(-1)).toBe(`${alice.userId} User`);
  const [ofAlice = '', ofBob = ''] = [alice, bob].map(({ userId }) => `${userId} LkbxDevice`);
  // What arrives in several parts is announced once for each part, of which there are few.
  expect([...new Set(announced)]).toEqual([ofAlice, ofBob, `${alice.userId} User`]);
  expect(announced.lastIndexOf(ofAlice)).toBeGreaterThan(announced.indexOf(ofBob));
  expect(announced.length).toBeLessThan(20);
  await database.pool.query(`SELECT pg_notify('dovetail', '${bob.userId} User') -- begun before the switch`);
  await expect.poll(() => announced.at(-1)).toBe(`${bob.userId} User`);
});

it.each([
  ['of no transaction', false, '3 User'],
  ['that announces nothing', true, '\u{1f512} 1,2,3 User'],
])(
  'a message %s, which any client of the database can send, does not stop the feed',
  async (_, isIn, text) => {
    announced = [];
    await database.pool.query(`SELECT pg_logical_emit_message($1, 'dovetail', $2)`, [isIn, text]);
    await rankUp(alice);
    const others = isIn ? ['all, true'] : [];
    await expect.poll(() => announced).toEqual([...others, `${alice.userId} User`]);
  },
);

describe('a change whose message arrives before its commit is visible', () => {
  it('is announced once it is visible, and nothing else has to wait', async () => {
    announced = [];
    const release = await holdCommits();
    const updating = rankUp(alice);
    // Longer than the interval of the heartbeats, which do not have to wait.
    await sleep(2_500);
    expect([feed.listening, await feed.catchUp?.(), announced]).toEqual([true, true, []]);
    await release();
    await updating;
    await expect.poll(() => announced).toEqual([`${alice.userId} User`]);
  });

  it('is waited for by a feed that begins to read the log after its message', async () => {
    const lost = new AbortController();
    const release = await holdCommits();
    const updating = rankUp(alice);
    await sleep(100);
    const order: string[] = [];
    const waiting = awaitWriters(ask, lost.signal).then(() => order.push('begins to read'));
    await sleep(100);
    order.push('is visible');
    await release();
    await Promise.all([updating, waiting]);
    expect(order).toEqual(['is visible', 'begins to read']);
    lost.abort();
  });

  it('is waited for also by a reader whose slot was made before it is visible', async () => {
    const lost = new AbortController();
    onTestFinished(() => lost.abort());
    const order: string[] = [];
    const askOrWait: Ask = async (text, values) =>
      text.endsWith(' over') && order.length === 0 ? ([{ over: false }] as never) : ask(text, values);
    const reading = readMessages(direct, askOrWait, () => {}, lost).then(() => order.push('begins to read'));
    await sleep(1_000);
    order.push('is visible');
    await reading;
    expect(order).toEqual(['is visible', 'begins to read']);
  });
});

it.each([
  ['the first ids', 3n, 60n],
  ['ids whose lower 32 bits begin again', 2n ** 32n - 30n, 2n ** 32n + 30n],
  ['ids of a server that has run for years', 2n ** 40n - 2n ** 31n + 99n, 2n ** 40n + 50n],
])('the lower half of the id of a transaction tells whether it is over: %s', (_, xmin, xmax) => {
  const middle = (xmin + xmax) / 2n + 5n;
  const ids = [xmin - 1n, xmin, xmin + 1n, middle, middle + 1n, xmax - 1n, xmax, xmax + 9n];
  const half = (id: bigint) => String(BigInt.asUintN(32, id));
  const over = ids.filter((id) => isOver(half(id), `${xmin}:${xmax}:${xmin},${middle}`));
  expect(over).toEqual([xmin - 1n, xmin + 1n, middle + 1n, xmax - 1n]);
});

describe('a reader of the log', () => {
  it('that is ended announces that anything may have changed, and starts again with another slot', async () => {
    await isListening('logical');
    announced = [];
    const slots = () =>
      database.pool.query<{ slot_name: string; temporary: boolean }>(
        'SELECT slot_name, temporary FROM pg_replication_slots',
      );
    // The slot of an earlier test is dropped with its connection.
    await expect.poll(async () => (await slots()).rows).toMatchObject([{ temporary: true }]);
    const before = await slots();
    await endReaders(database.pool);
    await expect.poll(() => announced).toEqual(['all, false', 'all, true']);
    const after = await slots();
    expect(after.rows).toMatchObject([{ temporary: true }]);
    expect(after.rows).not.toEqual(before.rows);
    await rankUp(bob);
    await expect.poll(() => announced).toContain(`${bob.userId} User`);
  });

  it('tells the server how far it has read, so that the server can remove the log up to there', async () => {
    const retained = async () => {
      const { rows } = await database.pool.query<{ behind: number }>(
        'SELECT max(pg_wal_lsn_diff(pg_current_wal_insert_lsn(), confirmed_flush_lsn))::int AS behind FROM pg_replication_slots',
      );
      return rows[0]?.behind;
    };
    await database.pool.query(
      'UPDATE "User" SET rank = rank FROM generate_series(1, 100); SELECT pg_logical_emit_message(true, $$other$$, repeat($$x$$, 1000000))',
    );
    await expect.poll(retained, { interval: 100 }).toBeLessThan(500_000);
  });
});

describe('a switch of the announcement mode', () => {
  it('to notifications is not made by a start, which names the statements that make it', async () => {
    const error: Error = await chooseAnnounceMode('notify', direct).catch((thrown) => thrown);
    announced = [];
    for (const statement of error.message.match(/SELECT [^;]+;/g) ?? []) await database.pool.query(statement);
    await isListening('notify');
    expect(announced.at(-1)).toBe('all, true');
    expect(await chooseAnnounceMode('notify', direct)).toEqual({ mode: 'notify' });
    announced = [];
    await rankUp(bob);
    await expect.poll(() => announced).toContain(`${bob.userId} User`);
  });

  it('is noticed by catchUp before it is announced, since changes may have been missed meanwhile', async () => {
    const line = await openTcpProxy(database);
    const following = await listenToServer({ connectionString: line.url }, direct, { readLog: readMessages });
    expect([following.listening, following.mode]).toEqual([true, 'notify']);
    const heard: string[] = [];
    following.subscribe(({ kind }) => heard.push(kind));
    line.deafen();
    await announceBy(database.pool, 'logical');
    await rankUp(alice);
    line.hear();
    expect(await following.catchUp?.()).toBe(false);
    await expect.poll(() => heard, { interval: 5 }).toEqual(['all', 'all']);
    expect([following.listening, following.mode]).toEqual([true, 'logical']);
    await following.close();
    await line.close();
    await announceBy(database.pool, 'notify');
    await isListening('notify');
  });

  it('to messages is made by a start that leaves the choice to the gateway, where messages can be read, and waits for no writer', async () => {
    const release = await holdTransaction(database.pool, 'SELECT pg_current_xact_id()');
    expect(await chooseAnnounceMode('auto', direct)).toEqual({ mode: 'logical' });
    await release();
    await isListening('logical');
  });
});

describe('announcing by messages is rejected', () => {
  const modeOrError = (config: pg.ClientConfig) =>
    chooseAnnounceMode('logical', config).then(
      ({ mode }) => mode,
      (error: Error) => error.message,
    );
  const as = (role: string) => ({
    connectionString: direct.connectionString.replace('postgres:postgres', `${role}:x`),
  });

  it('for a role that may not read the log, or may not switch the mode', async () => {
    await database.pool.query(
      `CREATE ROLE plain LOGIN PASSWORD 'x'; CREATE ROLE reader LOGIN REPLICATION PASSWORD 'x'`,
    );
    expect(await modeOrError(as('plain'))).toMatch(
      /^CHANGE_FEED is logical, which is not available: permission denied .*REPLICATION/,
    );
    expect(await modeOrError(as('reader'))).toBe('logical');
    await announceBy(database.pool, 'notify');
    const says =
      /permission denied for schema public\. As a role that may: .*SELECT announce_by\('logical'\);$/;
    expect(await modeOrError(as('reader'))).toMatch(says);
    expect(await chooseAnnounceMode('auto', as('reader'))).toEqual({
      mode: 'notify',
      why: expect.stringMatching(says),
    });
  });

  it('for an owner of the tables that may not create the publication, until that is granted', async () => {
    const name = 'of another';
    await database.pool.query(`CREATE ROLE "owning Me" LOGIN REPLICATION PASSWORD 'x'`);
    await database.pool.query(`CREATE DATABASE "${name}"`);
    const connectionString = `${server.url}/${encodeURIComponent(name)}`;
    const admin = new pg.Client({ connectionString });
    await admin.connect();
    await admin.query('ALTER SCHEMA public OWNER TO "owning Me"');
    const owner = { connectionString: connectionString.replace('postgres:postgres', 'owning%20Me:x') };
    await migrate(owner);
    expect(await chooseAnnounceMode('auto', owner)).toMatchObject({ mode: 'notify' });
    const error = await modeOrError(owner);
    expect(error).toMatch(
      /^CHANGE_FEED is logical, which is not available: permission denied for database of another\. /,
    );
    await admin.query(error.split('may: ')[1] ?? '');
    expect(await modeOrError(owner)).toBe('logical');
    await admin.query(`SELECT announce_by('notify')`);
    // Transactions of this role are read-only by default.
    await admin.query('ALTER ROLE "owning Me" SET default_transaction_read_only = on');
    expect(await modeOrError(owner)).toBe('logical');
    await admin.end();
  });

  it('when all replication slots are in use', async () => {
    const names = [1, 2, 3, 4].map((count) => `filler${count}`);
    for (const name of names)
      await database.pool.query('SELECT pg_create_physical_replication_slot($1)', [name]).catch(() => {});
    expect(await modeOrError(direct)).toMatch(/all replication slots are in use.*max_replication_slots/);
    await database.pool.query(
      `SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name LIKE 'filler%'`,
    );
  });
});
