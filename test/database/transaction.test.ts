/** Transactions whose connection is lost, and transactions that PostgreSQL aborts. */

import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { inTransaction } from '../../src/database/transaction.ts';
import { needsEngine, openAt, type TestDatabase } from '../support/gateway.ts';
import { databaseWith } from '../support/setUp.ts';
import { openTcpProxy, type TcpProxy } from '../support/tcpProxy.ts';

const { database } = await databaseWith();

const addUser = (client: pg.PoolClient, username: string) =>
  client.query('INSERT INTO "User" (username) VALUES ($1)', [username]);

const usernames = async () =>
  (await database.client.user.findMany({ orderBy: { id: 'asc' } })).map(({ username }) => username);

describe('a transaction', () => {
  beforeEach(() => database.client.user.deleteMany());

  it('is committed completely or not at all', async () => {
    expect(await inTransaction(database.pool, (client) => addUser(client, 'stays'))).toMatchObject({
      rowCount: 1,
    });
    const connections = database.pool.totalCount;
    const failed = inTransaction(database.pool, async (client) => {
      await addUser(client, 'lost');
      throw new Error('on purpose');
    });
    await expect(failed).rejects.toThrow('on purpose');
    // It was rolled back, so its connection can be used again.
    expect(database.pool.totalCount).toBe(connections);
    expect(database.pool.idleCount).toBe(connections);
    const listeners = () => inTransaction(database.pool, async (client) => client.listenerCount('error'));
    const before = await listeners();
    expect(await listeners()).toBe(before);
    expect(await usernames()).toEqual(['stays']);
  });

  it('that is aborted for a deadlock is retried once, and no more than that', async () => {
    const code = '40P01';
    let attempts = 0;
    const aborted = (times: number) =>
      inTransaction(database.pool, async (client) => {
        attempts++;
        await addUser(client, 'tried');
        if (attempts <= times) await client.query(`DO $$ BEGIN RAISE SQLSTATE '${code}'; END $$`);
      });
    await aborted(1);
    expect(attempts).toBe(2);
    expect(await usernames()).toEqual(['tried']);
    await database.client.user.deleteMany();
    attempts = 0;
    await expect(aborted(5)).rejects.toMatchObject({ code });
    expect(attempts).toBe(2);
    expect(await usernames()).toEqual([]);
  });

  it('is read committed, whatever isolation level the session has by default', async () => {
    const strict = new pg.Pool({
      ...database.pool.options,
      options: '-c default_transaction_isolation=serializable',
    });
    const { rows } = await inTransaction(strict, (client) => client.query('SHOW transaction_isolation'));
    await strict.end();
    expect(rows).toEqual([{ transaction_isolation: 'read committed' }]);
  });
});

it('a write and the query with it are one transaction, in which the query finds what was written', async () => {
  const write = (id: number | string) =>
    database.sql.write(
      { text: `INSERT INTO "User" (username) VALUES ('written') RETURNING username`, values: [] },
      'User',
      { select: { username: true }, where: { OR: [{ username: 'written' }, { id }] } },
    );
  await database.client.user.deleteMany();
  await expect(write('no id')).rejects.toThrow('invalid input syntax');
  expect(await usernames()).toEqual([]);
  expect(await write(0)).toEqual([[{ username: 'written' }], [{ username: 'written' }]]);
});

describe('a transaction whose connection is lost', () => {
  needsEngine('postgres', 'the embedded engine has no network connection');
  let line: TcpProxy;
  let distant: TestDatabase;
  const uncaught: unknown[] = [];
  const note = (error: unknown) => uncaught.push(error);

  beforeEach(async () => {
    process.on('uncaughtException', note);
    await database.client.user.deleteMany();
    line = await openTcpProxy(database);
    distant = await openAt(line.url, { connections: 1, statement: 300 });
  });
  afterEach(async () => {
    process.off('uncaughtException', note);
    await distant?.close();
    await line?.close();
  });

  const losses: [string, () => Promise<void>][] = [
    ['the server closes it', () => line.terminate()],
    ['the network closes it', async () => line.release()],
    ['it stops responding', async () => line.hold()],
  ];
  const moments: [string, boolean][] = [
    ['between two statements', false],
    ['while a statement runs', true],
  ];

  it.each(losses.flatMap(([how, lose]) => moments.map(([when, runs]) => [how, when, lose, runs] as const)))(
    'because %s %s fails without ending the process, and leaves no broken connection in the pool',
    async (_how, _when, lose, runs) => {
      const lost = inTransaction(distant.pool, async (client) => {
        await addUser(client, 'lost');
        const running = runs ? client.query('SELECT pg_sleep(0.1)') : undefined;
        running?.catch(() => {});
        await lose();
        await running;
        await addUser(client, 'never');
      });
      await expect(lost).rejects.toThrow(/[Cc]onnection|timeout|ECONNRESET/);
      expect(distant.pool.totalCount).toBe(0);
      line.release();
      // There is room for one connection, so this runs on a new one.
      await expect
        .poll(() => distant.pool.query('SELECT 1').then(({ rowCount }) => rowCount, String), {
          timeout: 5_000,
        })
        .toBe(1);
      expect(distant.pool.idleCount).toBe(1);
      expect(await usernames()).toEqual([]);
      expect(uncaught).toEqual([]);
    },
  );

  it('because the server closes it with the response to the previous statement fails without ending the process', async () => {
    await distant.pool.query('SELECT 1');
    const before = distant.pool.query('SELECT pg_sleep(0.05)');
    line.endWithNextResponse();
    // It waits for the only connection, and gets it as soon as the response is read, before the close that came with it.
    await expect(inTransaction(distant.pool, (client) => addUser(client, 'lost'))).rejects.toThrow(
      /[Cc]onnection|terminat/,
    );
    expect((await before).rowCount).toBe(1);
    expect(uncaught).toEqual([]);
    expect((await distant.pool.query('SELECT 1')).rowCount).toBe(1);
    expect(await usernames()).toEqual([]);
  });
});
