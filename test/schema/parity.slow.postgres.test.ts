/** Isolation of two accounts with similar data: neither sees any record of the other. `activation.postgres.test.ts` tests that it changes none. */

import {
  assertInterfaceType,
  type GraphQLField,
  type GraphQLObjectType,
  getNamedType,
  isInterfaceType,
  isLeafType,
  isNonNullType,
  isObjectType,
} from 'graphql';
import { describe, expect, it } from 'vitest';
import { routes } from '../../src/rest/routes.ts';
import { schema } from '../../src/schema/schema.ts';
import { type Account, importTemplate, recordsOf } from '../support/accounts.ts';
import { graphqlOnEveryPath, rest } from '../support/gateway.ts';
import { pathsFor, withId } from '../support/restResponses.ts';
import { gatewayWith } from '../support/setUp.ts';

// A query of everything exceeds the default limits.
const settings = { MAX_TOKENS: '100000', MAX_COMPLEXITY: '1000000000' };
const { gateway, alice, bob } = await gatewayWith(['alice', 'bob'], { settings });
const { client } = gateway.database;
/** Bob's public template that Alice has imported: the only record of his that she may read. */
const [imported] = bob.dttTemplates;
await importTemplate(client, alice, imported);
for (const { userId } of [alice, bob])
  await client.user.update({ where: { id: userId }, data: { activeTemplateId: imported } });
// Alice has a session with Bob's template, as he has himself.
await client.dttSession.update({
  where: { id: alice.dttSessions[1] ?? 0 },
  data: { templateId: imported },
});

/** Each account as the viewer, with the account whose name must be in none of its responses. */
const sides = () => [
  { viewer: alice, other: bob },
  { viewer: bob, other: alice },
];

/** Expects that a response contains nothing of the other account, except for the texts of the imported template. */
function expectNothingOf(other: Account, response: string): void {
  const ownWords = response.replaceAll('bob-program-0', '').replaceAll('Program 0 of bob', '');
  expect(ownWords).not.toContain(other.username);
}

/** A selection of all fields, links and counts, down to the given depth. */
function everything(type: GraphQLObjectType, depth: number): string {
  const fields = Object.values(type.getFields()).flatMap((field) => {
    const selection = selectionOf(field, depth);
    return selection === undefined ? [] : [selection];
  });
  return `{ __typename ${fields.join(' ')} }`;
}

function selectionOf(field: GraphQLField<unknown, unknown>, depth: number): string | undefined {
  if (field.args.some(({ type }) => isNonNullType(type))) return undefined;
  const type = getNamedType(field.type);
  if (isLeafType(type)) return field.name;
  if (depth === 0) return undefined;
  if (isInterfaceType(type)) {
    const kinds = schema
      .getPossibleTypes(type)
      .map((kind) => `... on ${kind.name} ${everything(kind, depth - 1)}`);
    return `${field.name} { ${kinds.join(' ')} }`;
  }
  if (!isObjectType(type)) return undefined;
  // The depth is counted in records, so a connection does not add to it.
  const isRecord = type.getInterfaces().some(({ name }) => name === 'Node');
  // Statistics contain records when they are grouped by a link.
  const grouped = field.args.some(({ name }) => name === 'by') ? '(by: [TEMPLATE])' : '';
  return `${field.name}${grouped} ${everything(type, isRecord ? depth - 1 : depth)}`;
}

/** The responses of every REST route that reads, as text. */
async function readRest(viewer: Account, idsOf: Account): Promise<string[]> {
  const paths = routes.filter(({ method }) => method === 'GET').flatMap(({ path }) => pathsFor(path, idsOf));
  return Promise.all(
    paths.map(async (path) => {
      const { status, body } = await rest(gateway, viewer.token, path);
      return JSON.stringify({ path, status, body });
    }),
  );
}

const rootFields = Object.values(schema.getQueryType()?.getFields() ?? {});
const withoutArguments = rootFields.filter(({ args }) => !args.some(({ type }) => isNonNullType(type)));
const byDatabaseId = rootFields.filter(({ args }) => args.some(({ name }) => name === 'databaseId'));
const nodeTypes = schema.getPossibleTypes(assertInterfaceType(schema.getType('Node')));

/** The ids of what an account has, by type. */
async function allOwned(account: Account): Promise<Readonly<Record<string, readonly number[]>>> {
  const { client } = gateway.database;
  const select = { id: true };
  const session = { ownerId: account.userId };
  const others = {
    User: await client.user.findMany({ where: { id: account.userId }, select }),
    ApiToken: await client.apiToken.findMany({ where: { userId: account.userId }, select }),
    DttTemplateSegment: await client.dttTemplateSegment.findMany({ where: { template: session }, select }),
    TrainerSegment: await client.trainerSegment.findMany({ where: { session }, select }),
    LockSegment: await client.lockSegment.findMany({ where: { session }, select }),
  };
  const ids = Object.entries(others).map(([type, rows]) => [type, rows.map(({ id }) => id)]);
  return { ...recordsOf(account), ...Object.fromEntries(ids) };
}

describe('through REST', () => {
  it('neither account sees a record of the other', async () => {
    for (const { viewer, other } of sides()) {
      const responses = await readRest(viewer, viewer);
      for (const response of responses) expectNothingOf(other, response);
      // The check was not empty: every path returned data, and most responses name their owner.
      expect(responses.filter((response) => !response.includes('"ok":true'))).toEqual([]);
      expect(responses.filter((response) => response.includes(viewer.username)).length).toBeGreaterThan(30);
    }
  });

  it('the response for a record of the other account is byte for byte that for a missing record', async () => {
    for (const { viewer, other } of sides()) {
      for (const { path } of routes.filter(({ method, path }) => method === 'GET' && path.includes('{id}'))) {
        const missing = await bytesOf(viewer, withId(path, 2 ** 31 - 1));
        expect(missing).toMatch(/^404 /);
        const foreign = pathsFor(path, other).filter(
          (each) => each !== withId('/dtt/templates/{id}', imported),
        );
        for (const each of foreign) {
          if (viewer === alice && each === withId('/dtt/settings/{id}', imported)) continue;
          expect(await bytesOf(viewer, each)).toBe(missing);
        }
      }
    }
  });

  /** The status and the whole response, without the headers that depend on the individual request. */
  async function bytesOf(viewer: Account, path: string): Promise<string> {
    const headers = { Authorization: `Bearer ${viewer.token}` };
    const response = await fetch(`${gateway.url}/api/v1${path}`, { headers });
    const { date, 'x-request-id': id, ratelimit, ...others } = Object.fromEntries(response.headers);
    return `${response.status} ${JSON.stringify(others)} ${await response.text()}`;
  }
});

describe('through GraphQL', () => {
  it.each(withoutArguments.map(({ name }) => name))(
    'neither account sees a record of the other under %s',
    async (name) => {
      const field = rootFields.find((candidate) => candidate.name === name);
      if (!field) throw new Error('the field was found a moment ago');
      for (const { viewer, other } of sides()) {
        const { data, errors } = await graphqlOnEveryPath(
          gateway,
          viewer.token,
          // From the viewer, links lead one record further.
          `{ ${selectionOf(field, name === 'viewer' ? 3 : 2)} }`,
        );
        expect(errors).toBeUndefined();
        const response = JSON.stringify(data);
        expectNothingOf(other, response);
        expect(response).toContain(viewer.username);
        const ids = await allOwned(viewer);
        for (const { __typename, databaseId } of recordsIn(data)) {
          const isOwn = ids[__typename]?.includes(databaseId);
          const isVisible = isOwn || (viewer === alice && (await isOfImported(__typename, databaseId)));
          expect({ __typename, databaseId, isVisible }).toEqual({ __typename, databaseId, isVisible: true });
        }
      }
    },
  );

  it.each(nodeTypes.map(({ name }) => name))(
    'neither account gets a %s of the other by its id',
    async (name) => {
      const type = schema.getType(name);
      if (!isObjectType(type)) throw new Error('a node is an object');
      for (const { viewer, other } of sides()) {
        const ids = (await allOwned(other))[name] ?? [];
        expect(ids.length).toBeGreaterThan(0);
        const field = byDatabaseId.find((candidate) => getNamedType(candidate.type) === type);
        // One document for all ids, so that it is validated and compiled only once.
        const query = `query ($id: ID!${field ? ', $databaseId: Int!' : ''}) {
        node(id: $id) { ... on ${name} ${everything(type, 1)} }
        nodes(ids: [$id]) { ... on ${name} ${everything(type, 1)} }
        ${field ? `record: ${field.name}(databaseId: $databaseId) ${everything(type, 1)}` : ''}
      }`;
        for (const databaseId of ids) {
          const id = Buffer.from(`${name}:${databaseId}`).toString('base64url');
          const { data, errors } = await graphqlOnEveryPath(gateway, viewer.token, query, { id, databaseId });
          expect(errors).toBeUndefined();
          if (viewer === alice && (await isOfImported(name, databaseId))) {
            expect(data.node).not.toBeNull();
            expectNothingOf(other, JSON.stringify(data));
          } else {
            expect(data).toEqual({ node: null, nodes: [null], ...(field && { record: null }) });
          }
        }
      }
    },
  );
});

/** The records at any depth in the data of a response, without duplicates. */
function recordsIn(data: unknown): { __typename: string; databaseId: number }[] {
  const found = new Map<string, { __typename: string; databaseId: number }>();
  JSON.stringify(data, (_key, value) => {
    if (typeof value?.databaseId === 'number') {
      const { __typename, databaseId } = value;
      found.set(`${__typename}:${databaseId}`, { __typename, databaseId });
    }
    return value;
  });
  return [...found.values()];
}

async function isOfImported(type: string, id: number): Promise<boolean> {
  if (type === 'DttTemplate') return id === imported;
  if (type !== 'DttTemplateSegment') return false;
  const segment = await gateway.database.client.dttTemplateSegment.findUnique({ where: { id } });
  return segment?.templateId === imported;
}
