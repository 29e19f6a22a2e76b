/** What most files of tests begin with: a database or a gateway with accounts, which is closed after the last test of the file. */

import { afterAll } from 'vitest';
import { type Account, createAccount } from './accounts.ts';
import {
  openBeside,
  openDemoGateway,
  openTestDatabase,
  openTestGateway,
  type TestDatabase,
  type TestGatewayOptions,
} from './gateway.ts';

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
  afterAll(database.close);
  return { database, ...(await createAccounts(database, names)) };
}

/** Starts a gateway over a new database with accounts of these names. */
export async function gatewayWith<Name extends string>(
  names: readonly Name[],
  options: TestGatewayOptions = {},
) {
  const gateway = await openTestGateway(undefined, options);
  afterAll(gateway.close);
  return { gateway, database: gateway.database, ...(await createAccounts(gateway.database, names)) };
}

/** Starts another gateway over a database that is opened already. */
export async function gatewayBeside(database: TestDatabase, options: TestGatewayOptions = {}) {
  const gateway = await openTestGateway(await openBeside(database), options);
  afterAll(gateway.close);
  return gateway;
}

/** Starts a gateway with the demo account. */
export async function demoGateway() {
  const gateway = await openDemoGateway();
  afterAll(gateway.close);
  return gateway;
}
