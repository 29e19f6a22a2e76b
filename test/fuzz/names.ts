/** Reads the ids and cursors of accounts, which the random requests use. */

import type { Account } from '../support/accounts.ts';
import { graphqlOnce, type TestGateway } from '../support/gateway.ts';
import type { Names } from './requests.ts';

/** @param url of a gateway that has the accounts. */
export async function namesOf(url: string, accounts: readonly Account[]): Promise<Names> {
  return {
    ids: accounts.flatMap(idsOf),
    cursors: (await Promise.all(accounts.map(({ token }) => readCursors(url, token)))).flat(),
  };
}

function idsOf(account: Account): number[] {
  const { userId, username, token, ...owned } = account;
  return [...new Set([userId, ...Object.values(owned).flat()])];
}

async function readCursors(url: string, token: string): Promise<string[]> {
  const query =
    '{ dttSessions { edges { cursor } } dttDevices { edges { cursor } } lockTemplates { edges { cursor } } devices { edges { cursor } } }';
  // `graphqlOnce` uses only the URL of the gateway.
  const { data } = await graphqlOnce({ url } as TestGateway, token, query);
  return Object.values<{ edges: { cursor: string }[] }>(data).flatMap(({ edges }) =>
    edges.map(({ cursor }) => cursor),
  );
}
