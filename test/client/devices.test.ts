/** A frontend at work: the types of what it asks for come from the schema, the answers from a gateway. */

import type { TypedDocumentNode } from '@graphql-typed-document-node/core';
import { print } from 'graphql';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Account, createAccount } from '../accounts.ts';
import { graphql, openTestGateway, rest, type TestGateway } from '../gateway.ts';
import type { DttDeviceQuery } from '../generated/rest/graphql.ts';
import { trainersQuery } from './devices.ts';

let gateway: TestGateway;
let alice: Account;
beforeAll(async () => {
  gateway = await openTestGateway();
  alice = await createAccount(gateway.database.client, 'alice');
});
afterAll(() => gateway?.close());

async function ask<Data, Variables extends Record<string, unknown>>(
  document: TypedDocumentNode<Data, Variables>,
  variables: Variables,
): Promise<Data> {
  const { data, errors } = await graphql(gateway, alice.token, print(document), variables);
  expect(errors).toBeUndefined();
  return data;
}

it('reads trainers with their sessions, with types', async () => {
  const { dttDevices } = await ask(trainersQuery, { first: 2 });
  const names: (string | null | undefined)[] = dttDevices.nodes.map(
    ({ sessions }) => sessions.nodes[0]?.template?.name,
  );
  expect(dttDevices.totalCount).toBe(3);
  expect(names).toEqual(['Program 0 of alice', 'Program 1 of alice']);
});

it('reads a REST answer by the type of its operation', async () => {
  const { body } = await rest(gateway, alice.token, `/dtt/${alice.dttDevices[0]}`);
  // The envelope's data is what the operation selects as `data`.
  const device = body.data as DttDeviceQuery['data'];
  expect(device?.macAddress).toBe('alice:dtt:0');
  const visited: string | null | undefined = device?.lastVisited;
  expect(visited).toBe('2026-01-01T00:30:00.000Z');
});
