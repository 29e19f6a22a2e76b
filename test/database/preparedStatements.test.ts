/** Prepared statements: which a connection has, and when it prepares them again. */

import { describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/database.ts';
import { Batch } from '../../src/database/reader/sql.ts';
import { createAccount } from '../support/accounts.ts';
import { graphqlOnce, needsEngine, openAt, openTestGateway } from '../support/gateway.ts';
import { databaseWith } from '../support/setUp.ts';

const { database } = await databaseWith();
const url = database.pool.options.connectionString ?? '';

describe('a connection to a server', () => {
  needsEngine('postgres', 'statements have no names on the embedded engine');

  /** The database through a single connection. */
  const openOne = () => openAt(url, { connections: 1, statement: 10_000 });

  /** The statements that are prepared on one connection. */
  async function preparedOn({ pool }: Database) {
    const client = await pool.connect();
    const { rows } = await client.query<{ statement: string }>(
      'SELECT statement FROM pg_prepared_statements',
    );
    client.release();
    return rows;
  }

  it('prepares a statement again after it has failed once since the type of a column has changed', async () => {
    const one = await openOne();
    const { pool } = database;
    await pool.query('CREATE TABLE retyped (state int); INSERT INTO retyped VALUES (1)');
    const ask = () =>
      one.sql.run<{ state: number }>('UPDATE retyped SET state = state + 1 RETURNING state', []);
    await ask();
    await pool.query('ALTER TABLE retyped ALTER state TYPE float8');
    await expect(ask()).rejects.toThrow('cached plan must not change result type');
    expect(await ask()).toEqual([{ state: 3 }]);
    await one.close();
  });

  it('prepares the statements of plain lists, and not those of lists that a client filters or orders', async () => {
    const account = await createAccount(database.client, 'alice');
    const one = await openOne();
    const gateway = await openTestGateway(one);
    const lists = async (list: string, item: string) => {
      const page = '{ totalCount nodes { databaseId } }';
      const body = `{ ${list} ${page} dttTemplates { nodes { ${item} ${page} } } dttSessionStats { total { segmentCount } } }`;
      const { errors } = await graphqlOnce(gateway, account.token, body);
      expect(errors).toBeUndefined();
    };
    const statements = async () => (await preparedOn(one)).map(({ statement }) => statement).sort();
    await lists('dttSessions(first: 3)', 'sessions(first: 3)');
    await lists('dttSessions(last: 3)', 'sessions(last: 3)');
    const usual = await statements();
    expect(usual.filter((statement) => statement.includes('"DttSession"'))).toHaveLength(7);
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
});

it('a value that cannot be sent or read fails its statement only', async () => {
  const { sql, pool } = database;
  await expect(sql.run('SELECT $1', [new Date(Number.NaN)])).rejects.toThrow('Invalid time value');
  const columns = [{ name: 'word', read: JSON.parse }];
  const unreadable = new Batch([{ name: '', text: "SELECT 'word'", values: [], columns }]);
  await expect(pool.query(unreadable)).rejects.toThrow(SyntaxError);
  expect(await sql.run('SELECT 1 AS one', [])).toEqual([{ one: 1 }]);
});
