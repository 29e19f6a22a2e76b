/** Prepared statements: how many a connection has, and when it prepares them again. */

import { tmpdir } from 'node:os';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Database, openDatabase } from '../../src/database/database.ts';
import { createStatementNames } from '../../src/database/preparedStatements.ts';
import { maxStatements } from '../../src/database/reader/batch.ts';
import { Slot } from '../../src/database/reader/query.ts';
import { createAccount } from '../support/accounts.ts';
import {
  graphqlOnce,
  needsEngine,
  openTestDatabase,
  openTestGateway,
  type TestDatabase,
  withClient,
} from '../support/gateway.ts';

describe('a connection to a server', () => {
  needsEngine('postgres', 'statements have no names on the embedded engine');

  let database: TestDatabase;
  let url: string;
  beforeAll(async () => {
    database = await openTestDatabase();
    url = database.pool.options.connectionString ?? '';
  });
  afterAll(() => database?.close());

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
    const one = await openDatabase(
      { DATABASE_URL: url, DATA_DIR: tmpdir() },
      { connections: 1, statement: 10_000 },
    );
    const usual = 'SELECT $1::int AS usual';
    for (let number = 0; number < 5_000; number++) {
      const [row] = await one.sql.run<{ found: number }>(`SELECT $1::int + ${number} AS found`, [1]);
      expect(row?.found).toBe(number + 1);
      if (number % 100 === 0) await one.sql.run(usual, [number]);
    }
    const server = await preparedOn(one);
    expect(server).toHaveLength(maxStatements);
    // It was used throughout, and so never evicted.
    expect(server).toContainEqual({ name: createStatementNames()(usual), statement: usual });
    await one.close();
  });

  it.each(['run', 'write'] as const)(
    'prepares a statement again when the type of a column has changed, in %s',
    async (way) => {
      const connections = 3;
      const opened = await openDatabase(
        { DATABASE_URL: url, DATA_DIR: tmpdir() },
        { connections, statement: 10_000 },
      );
      const table = `retyped_${way}`;
      const { pool } = database;
      await pool.query(`CREATE TYPE ${table}_state AS ENUM ('on', 'off')`);
      await pool.query(`CREATE TABLE ${table} (state ${table}_state, changes int)`);
      await pool.query(`INSERT INTO ${table} VALUES ('on', 0)`);
      const text =
        way === 'run'
          ? `SELECT state, pg_sleep(0.02)::text FROM ${table}`
          : `UPDATE ${table} SET changes = changes + 1 RETURNING state, pg_sleep(0.02)::text`;
      const ask = () =>
        Promise.all(Array.from({ length: connections }, () => opened.sql[way]<{ state: string }>(text, [])));
      await ask();
      await pool.query(`ALTER TABLE ${table} ALTER state TYPE text`);
      expect((await ask()).flat().map(({ state }) => state)).toEqual(['on', 'on', 'on']);
      // The attempts that were rejected had changed nothing.
      const { rows } = await pool.query(`SELECT changes FROM ${table}`);
      expect(rows).toEqual([{ changes: way === 'write' ? 2 * connections : 0 }]);
      await opened.close();
    },
  );

  it('prepares the statements of plain lists, and not those of lists that a client filters or orders', async () => {
    const account = await createAccount(database.client, 'alice');
    const one = withClient(
      await openDatabase({ DATABASE_URL: url, DATA_DIR: tmpdir() }, { connections: 1, statement: 10_000 }),
    );
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

  it('prepares the statements of writeAndFind again when the type of a column has changed', async () => {
    const opened = await openDatabase(
      { DATABASE_URL: url, DATA_DIR: tmpdir() },
      { connections: 3, statement: 10_000 },
    );
    const { pool } = database;
    await pool.query('CREATE TABLE counted (id int, state int); INSERT INTO counted VALUES (1, 0)');
    const statement = {
      text: 'UPDATE counted SET id = id + 1 WHERE state::int = $1 RETURNING id',
      values: [0],
      columns: [{ name: 'id', read: Number }],
    };
    const query = { select: { username: true }, where: { id: new Slot('id') } } as const;
    const ask = () => opened.sql.writeAndFind(statement, 'User', query, { id: 0 });
    // So that each connection has both statements prepared, each with its own name.
    const askAll = () => Promise.all([ask(), ask(), ask()]);
    await askAll();
    const server = await preparedOn(opened);
    expect(server.filter(({ statement: text }) => text === statement.text)).toHaveLength(1);
    expect(server.filter(({ statement: text }) => text.includes('"username" FROM "User"'))).toHaveLength(1);
    for (const change of ['counted ALTER id TYPE bigint', '"User" ALTER username TYPE varchar(99)']) {
      await pool.query(`UPDATE counted SET id = 0`);
      await askAll();
      await pool.query(`ALTER TABLE ${change}`);
      expect(await ask()).toEqual({ written: [{ id: 4 }], found: [] });
    }
    await opened.close();
  });

  it('has no more prepared statements than its limit when some statements fail', async () => {
    const one = await openDatabase(
      { DATABASE_URL: url, DATA_DIR: tmpdir() },
      { connections: 1, statement: 10_000 },
    );
    const run = (text: string) => one.sql.run(text, []);
    for (let number = 0; number < 2 * maxStatements; number++) {
      await run(`SELECT ${number}`);
      await expect(run(`SELECT nothing_${number}`)).rejects.toThrow('does not exist');
    }
    expect((await preparedOn(one)).length).toBeLessThanOrEqual(maxStatements);
    await one.close();
  });

  it('prepares a statement again after it has failed, whether it was prepared or not', async () => {
    const one = await openDatabase(
      { DATABASE_URL: url, DATA_DIR: tmpdir() },
      { connections: 1, statement: 10_000 },
    );
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

it('a statement has the same name as long as it is used, and no two statements share a name', () => {
  const nameOf = createStatementNames();
  const usual = nameOf('usual');
  const names = new Set([usual]);
  for (let number = 0; number < 10_000; number++) {
    names.add(nameOf(`SELECT ${number}`));
    expect(nameOf('usual')).toBe(usual);
  }
  expect(names.size).toBe(10_001);
});

it('a statement has the same name in every process, and so in sessions that several processes share', () => {
  const texts = ['one', 'two', 'three'];
  const [here, there] = [createStatementNames(), createStatementNames()];
  expect(texts.map(here)).toEqual(texts.toReversed().map(there).toReversed());
});

it('a very long statement has no name, and so is not prepared', () => {
  const nameOf = createStatementNames();
  expect(nameOf('a'.repeat(8_000))).not.toBe('');
  expect(nameOf('a'.repeat(8_001))).toBe('');
});
