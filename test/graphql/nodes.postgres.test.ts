/** Relay's `node` and `nodes`: any record of the viewer by its global id, and nothing else. */

import { assertInterfaceType } from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { schema } from '../../src/schema/schema.ts';
import { type Account, createAccount, everyType } from '../support/accounts.ts';
import { graphqlOnEveryPath, openTestGateway, type TestGateway } from '../support/gateway.ts';

let gateway: TestGateway;
let alice: Account;
let bob: Account;

beforeAll(async () => {
  gateway = await openTestGateway();
  alice = await createAccount(gateway.database.client, 'alice');
  bob = await createAccount(gateway.database.client, 'bob');
});
afterAll(() => gateway?.close());

interface Found {
  readonly __typename: string;
  readonly id: string;
  readonly databaseId: number;
}

/** One record of each type that has a global id. */
async function oneOfEach(account: Account): Promise<Found[]> {
  const { data } = await graphqlOnEveryPath(
    gateway,
    account.token,
    `{
      ${everyType(1, '...Ids')}
    }
    fragment Ids on Node { __typename id ${types.map((type) => `... on ${type} { databaseId }`).join(' ')} }`,
  );
  const found = new Map<string, Found>();
  JSON.stringify(data, (_key, value) => {
    if (value?.__typename && value.id) {
      const { __typename, id, databaseId } = value;
      found.set(__typename, { __typename, id, databaseId });
    }
    return value;
  });
  return [...found.values()];
}

const types = schema
  .getPossibleTypes(assertInterfaceType(schema.getType('Node')))
  .map(({ name }) => name)
  .sort();
const selection = `__typename id ${types.map((type) => `... on ${type} { databaseId }`).join(' ')}`;
const node = `query ($id: ID!) { node(id: $id) { ${selection} } }`;
const nodes = `query ($ids: [ID!]!) { nodes(ids: $ids) { ${selection} } }`;

describe('a node', () => {
  it('is any record of the viewer, of every type that has a global id', async () => {
    const records = await oneOfEach(alice);
    expect(records.map(({ __typename }) => __typename).sort()).toEqual(types);
    for (const record of records) {
      const { data, errors } = await graphqlOnEveryPath(gateway, alice.token, node, { id: record.id });
      expect(errors).toBeUndefined();
      expect(data.node).toEqual(record);
    }
  });
});

describe('nodes', () => {
  it('come in the order of the ids, as often as each id is given, with null for records of other users', async () => {
    const [own, foreign] = [await oneOfEach(alice), await oneOfEach(bob)];
    const wanted = [...own, ...foreign, ...[...own].reverse()];
    const { data, errors } = await graphqlOnEveryPath(gateway, alice.token, nodes, {
      ids: wanted.map(({ id }) => id),
    });
    expect(errors).toBeUndefined();
    expect(data.nodes).toEqual([...own, ...foreign.map(() => null), ...[...own].reverse()]);
  });
});
