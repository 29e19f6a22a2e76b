/** Prepared statements: how many a connection has, and when it prepares them again. */

import { tmpdir } from 'node:os';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Database, openDatabase } from '../../src/database/database.ts';
import { maxStatements, statementName } from '../../src/database/reader/batch.ts';
import { createAccount } from '../support/accounts.ts';
import {
  graphqlOnce,
  needsEngine,
  openTestDatabase,
  openTestGateway,
  type TestDatabase,
  withClient,
} from '../support/gateway.ts';
import { openTransactionPooler } from '../support/transactionPooler.ts';

describe('a connection to a server', () => {
  needsEngine('postgres', 'statements have no names on the embedded engine');

  let database: TestDatabase;
  let url: string;
  beforeAll(async () => {
    database = await openTestDatabase();
    url = database.pool.options.connectionString ?? '';
  });
  afterAll(() => database?.close());

  /** The database through a single connection. */
  const openOne = () =>
    openDatabase({ DATABASE_URL: url, DATA_DIR: tmpdir() }, { connections: 1, statement: 10_000 });

  /** The statements that are prepared on one connection. */
  async function preparedOn({ pool }: Database) {
    const client = await pool.connect();
    const { rows } = await client.query<{ name: string; statement: string }>(
      'SELECT name, statement FROM pg_prepared_statements',
    );
    client.release();
    return rows;
  }

  it('has only the most recently used statements prepared', async () => {
    const one = await openOne();
    const usual = 'SELECT $1::int AS usual';
    for (let number = 0; number < 4 * maxStatements; number++) {
      const [row] = await one.sql.run<{ found: number }>(`SELECT $1::int + ${number} AS found`, [1]);
      expect(row?.found).toBe(number + 1);
      if (number % 100 === 0) await one.sql.run(usual, [number]);
    }
    const server = await preparedOn(one);
    expect(server).toHaveLength(maxStatements);
    // It was used throughout, and so never evicted.
    expect(server).toContainEqual({ name: statementName(usual), statement: usual });
    await one.close();
  });

  it('prepares a statement again after it has failed once since the type of a column has changed', async () => {
    const one = await openOne();
    const { pool } = database;
    await pool.query('CREATE TABLE retyped (state int); INSERT INTO retyped VALUES (1)');
    const ask = () =>
      one.sql.write<{ state: number }>('UPDATE retyped SET state = state + 1 RETURNING state', []);
    await ask();
    await pool.query('ALTER TABLE retyped ALTER state TYPE float8');
    await expect(ask()).rejects.toThrow('cached plan must not change result type');
    expect(await ask()).toEqual([{ state: 3 }]);
    await one.close();
  });

  it.each([1, 6])(
    'through a pooler with %i sessions works whether the pooler knows names or not, and makes each write once',
    async (size) => {
      const pooler = await openTransactionPooler(url, size);
      const opened = await openDatabase(
        { DATABASE_URL: pooler.url, DATA_DIR: tmpdir() },
        { connections: 3, statement: 10_000 },
      );
      await database.pool.query('DROP TABLE IF EXISTS tally; CREATE TABLE tally (number int)');
      const numbers = Array.from({ length: 15 }, (_, number) => number);
      const writeAll = () =>
        Promise.all(
          numbers.map((number) =>
            opened.sql.write<object>(`INSERT INTO tally VALUES ($1 + ${number % 3}) RETURNING number`, [
              number,
            ]),
          ),
        );
      const expected = numbers.map((number) => [{ number: number + (number % 3) }]);
      expect(await writeAll()).toEqual(expected);
      pooler.carryNames(false);
      for (let round = 0; round < 3; round++) expect(await writeAll()).toEqual(expected);
      const { rows } = await database.pool.query('SELECT count(*)::int FROM tally');
      expect(rows).toEqual([{ count: 4 * numbers.length }]);
      await opened.close();
      await pooler.close();
    },
  );

  it('prepares the statements of plain lists, and not those of lists that a client filters or orders', async () => {
    const account = await createAccount(database.client, 'alice');
    const one = withClient(await openOne());
    const gateway = await openTestGateway(one);
    const lists = async (list: string, item: string) => {
      const body = `{ ${list} { totalCount nodes { databaseId } } dttTemplates { nodes { ${item} { nodes { databaseId } } } } }`;
      const { errors } = await graphqlOnce(gateway, account.token, body);
      expect(errors).toBeUndefined();
    };
    const statements = async () => (await preparedOn(one)).map(({ statement }) => statement).sort();
    await lists('dttSessions(first: 3)', 'sessions(first: 3)');
    await lists('dttSessions(last: 3)', 'sessions(last: 3)');
    const usual = await statements();
    expect(usual.filter((statement) => statement.includes('"DttSession"'))).toHaveLength(5);
    const where = 'where: { createdAt: { gt: "2020-01-01T00:00:00Z" } }';
    const orderBy = 'orderBy: { field: CREATED_AT, direction: ASC }';
    for (const given of [where, orderBy, `${where}, ${orderBy}`])
      await lists(`dttSessions(${given})`, `sessions(${given})`);
    await lists(`devices(${where.replace('createdAt', 'lastVisitedAt')})`, `sessions(${where})`);
    await lists('dttSessions(first: 4)', 'sessions(first: 4)');
    const statistics = `{ dttSessionStats(${where}) { total { segmentCount } } }`;
    expect((await graphqlOnce(gateway, account.token, statistics)).errors).toBeUndefined();
    expect(await statements()).toEqual(usual);
    await gateway.close();
  });

  it('prepares a statement again after it has failed, whether it was prepared or not', async () => {
    const one = await openOne();
    const divide = (by: number) => one.sql.run('SELECT 1 / $1::int AS result', [by]);
    for (const by of [0, 1, 0, 1]) {
      if (by === 0) await expect(divide(by)).rejects.toThrow('division by zero');
      else expect(await divide(by)).toEqual([{ result: 1 }]);
    }
    // Later statements are prepared as well.
    await one.sql.run('SELECT 2', []);
    expect(await preparedOn(one)).toHaveLength(2);
    await one.close();
  });
});

it('a statement has a name of its own, the same in every process, unless it is very long', () => {
  expect(statementName('SELECT 1')).toBe('dovetail_4ATr1bVTKkuFmEpi-K1IqB');
  expect(statementName('SELECT 2')).not.toBe(statementName('SELECT 1'));
  expect(statementName('a'.repeat(8_000))).not.toBe('');
  expect(statementName('a'.repeat(8_001))).toBe('');
});
