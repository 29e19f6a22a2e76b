/** Prepared statements have names only behind poolers that support that. */

import { tmpdir } from 'node:os';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { carriesNames } from '../../../src/database/connection/namedStatements.ts';
import { type Database, openDatabase } from '../../../src/database/database.ts';
import { type Account, createAccount } from '../../support/accounts.ts';
import {
  openTestDatabase,
  openTestGateway,
  rest,
  type TestDatabase,
  withClient,
} from '../../support/gateway.ts';
import { pgbouncerVersion, startPgBouncer } from '../../support/pgbouncer.ts';
import { openTransactionPooler } from '../../support/transactionPooler.ts';

let database: TestDatabase;
let alice: Account;
let url: string;
beforeAll(async () => {
  database = await openTestDatabase();
  alice = await createAccount(database.client, 'alice');
  url = database.pool.options.connectionString ?? '';
});
afterAll(() => database?.close());

const undo: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const each of undo.splice(0).reverse()) await each();
});

async function openPooler(size: number) {
  const pooler = await openTransactionPooler(url, size);
  undo.push(pooler.close);
  return pooler;
}

async function open(through: string): Promise<Database> {
  const opened = await openDatabase(
    { DATABASE_URL: through, DATA_DIR: tmpdir() },
    { connections: 3, statement: 5_000 },
  );
  undo.push(opened.close);
  return opened;
}

/** The names of the prepared statements on the server, which clients or poolers have given them. */
const namesOf = async ({ pool }: Database) => {
  const { rows } = await pool.query<{ name: string }>('SELECT name FROM pg_prepared_statements');
  return rows.map(({ name }) => name);
};

describe('a pooler in transaction mode', () => {
  it('that supports names gets statements with names, and returns the right results', async () => {
    const pooler = await openPooler(6);
    const through = await open(pooler.url);
    const texts = Array.from({ length: 30 }, (_, number) => `SELECT $1::int + ${number} AS found`);
    for (let round = 0; round < 3; round++)
      await Promise.all(
        texts.map(async (text, number) => {
          expect(await through.sql.run<object>(text, [1])).toEqual([{ found: 1 + number }]);
        }),
      );
    expect((await namesOf(through)).filter((name) => /^pooler_\d+_dovetail_/.test(name))).not.toEqual([]);
    const gateway = await openTestGateway(withClient(through));
    for (let round = 0; round < 3; round++)
      expect((await rest(gateway, alice.token, '/dtt/sessions')).status).toBe(200);
    undo.pop();
    await gateway.close();
  });

  it('that is replaced by one without support for names can still be used, and each write is made once', async () => {
    const pooler = await openPooler(6);
    const through = await open(pooler.url);
    await database.pool.query('CREATE TABLE IF NOT EXISTS tally (number int)');
    const write = (number: number) =>
      through.sql.write<{ number: number }>('INSERT INTO tally VALUES ($1) RETURNING number', [number]);
    for (let number = 0; number < 10; number++) await write(number);
    pooler.carryNames(false);
    for (let number = 10; number < 40; number++) expect(await write(number)).toEqual([{ number }]);
    const { rows } = await database.pool.query('SELECT number FROM tally ORDER BY number');
    expect(rows.map(({ number }) => number)).toEqual(Array.from({ length: 40 }, (_, number) => number));
  });

  it.each([1, 2, 6])(
    'that does not support names, with %i sessions, gets none, and has no prepared statements left',
    async (size) => {
      const pooler = await openPooler(size);
      pooler.carryNames(false);
      expect(await carriesNames({ connectionString: pooler.url })).toBe(false);
      const through = await open(pooler.url);
      for (let number = 0; number < 2 * size; number++) {
        await through.sql.run('SELECT $1::int AS found', [1]);
        expect(await namesOf(through)).toEqual([]);
      }
    },
  );
});

describe.skipIf(pgbouncerVersion === undefined)('a real PgBouncer', () => {
  it.each(['transaction', 'session'] as const)(
    'gets no names in %s mode, unless it is 1.21 or later in transaction mode',
    async (mode) => {
      const [major = 0, minor = 0] = (pgbouncerVersion ?? '').split('.').map(Number);
      const pooler = await startPgBouncer(url, mode);
      undo.push(pooler.close);
      const carries = await carriesNames({ connectionString: pooler.url });
      if (mode === 'session' || (major === 1 && minor < 21)) expect(carries).toBe(false);
    },
  );
});
