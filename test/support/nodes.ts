/** The records of every type that a viewer sees through GraphQL. */

import { hasField } from '../../src/database/dataModel.ts';
import { listedTypes, recordTypes } from '../../src/database/models.ts';
import { fieldOf } from './accounts.ts';
import { graphqlOnce, type TestGateway } from './gateway.ts';

/** Both keys of a record. */
export interface Keys {
  readonly __typename: string;
  readonly id: string;
  readonly databaseId: number;
}

/** Selects the keys of a record of any type. */
export const keys = `__typename ${recordTypes.map((type) => `... on ${type} { id databaseId }`).join(' ')}`;

/** The viewer, and up to so many records of each other type, with their segments. */
export async function recordsSeenBy(gateway: TestGateway, token: string, count: number): Promise<Keys[]> {
  const lists = listedTypes.map((type) => {
    const segments = hasField(type, 'segments') ? 'segments { ...Keys }' : '';
    return `${fieldOf(type)}s(first: ${count}) { nodes { ...Keys ${segments} } }`;
  });
  const query = `{ viewer { ...Keys } ${lists.join(' ')} } fragment Keys on Node { ${keys} }`;
  const { data } = await graphqlOnce(gateway, token, query);
  const found: Keys[] = [];
  JSON.stringify(data, (_key, value) => {
    if (value?.__typename && value.id) {
      const { __typename, id, databaseId } = value;
      found.push({ __typename, id, databaseId });
    }
    return value;
  });
  return found;
}
