/**
 * What most files of tests begin with: a database or a gateway with accounts, which is closed afterwards. And a transaction that a test
 * holds.
 */

import pg from 'pg';
import { afterAll, onTestFinished, TestRunner } from 'vitest';
import { type Account, createAccount } from './accounts.ts';
import {
  openBeside,
  openDemoGateway,
  openTestDatabase,
  openTestGateway,
  type TestDatabase,
  type TestGatewayOptions,
} from './gateway.ts';

/** Closes something after the running test or, where none runs, after the last test of the file. */
function closeAfterwards(close: () => Promise<void>): void {
  // Inside a test, `afterAll` would be ignored.
  if (TestRunner.getCurrentTest()) onTestFinished(close);
  else afterAll(close);
}

async function createAccounts<Name extends string>(
  { client }: TestDatabase,
  names: readonly Name[],
): Promise<Record<Name, Account>> {
  const accounts: [Name, Account][] = [];
  for (const name of names) accounts.push([name, await createAccount(client, name)]);
  // Each name has its account.
  return Object.fromEntries(accounts) as Record<Name, Account>;
}

/** Opens a new database with accounts of these names. */
export async function databaseWith<Name extends string>(...names: readonly Name[]) {
  const database = await openTestDatabase();
  closeAfterwards(database.close);
  return { database, ...(await createAccounts(database, names)) };
}

/** Starts a gateway over a new database with accounts of these names. */
export async function gatewayWith<Name extends string>(
  names: readonly Name[],
  options: TestGatewayOptions = {},
) {
  const gateway = await openTestGateway(undefined, options);
  closeAfterwards(gateway.close);
  return { gateway, database: gateway.database, ...(await createAccounts(gateway.database, names)) };
}

/** Starts another gateway over a database that is opened already. */
export async function gatewayBeside(database: TestDatabase, options: TestGatewayOptions = {}) {
  const gateway = await openTestGateway(await openBeside(database), options);
  closeAfterwards(gateway.close);
  return gateway;
}

/** Starts a gateway with the demo account. */
export async function demoGateway() {
  const gateway = await openDemoGateway();
  closeAfterwards(gateway.close);
  return gateway;
}

/**
 * Leaves a transaction open over a connection of its own, until the test is finished, even if it fails: what waits for its locks would
 * never end.
 * @returns a function that ends it before.
 */
export async function holdTransaction({ options }: pg.Pool, sql: string): Promise<() => Promise<void>> {
  const client = new pg.Client(options);
  await client.connect();
  const release = () => client.end();
  onTestFinished(release);
  await client.query(`BEGIN; ${sql}`);
  return release;
}

/** What comes of a write, which is rolled back: its number of rows, or its error. */
export async function attemptIn(pool: pg.Pool, sql: string, first = ''): Promise<string | pg.DatabaseError> {
  const client = await pool.connect();
  await client.query(`BEGIN; ${first}`);
  const outcome = await client.query(sql).then(
    ({ rowCount }) => `wrote ${rowCount} rows`,
    (error: pg.DatabaseError) => error,
  );
  await client.query('ROLLBACK');
  client.release();
  return outcome;
}
