/**
 * The schema as a subgraph of a supergraph (Apollo Federation 2). It has two more queries: a federation gateway reads records that other
 * subgraphs refer to by `_entities`, and the text of the subgraph by `_service`. Loaded only if FEDERATION is on.
 */

import {
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  type GraphQLResolveInfo,
  GraphQLScalarType,
  GraphQLSchema,
  GraphQLString,
  GraphQLUnionType,
  isObjectType,
  lexicographicSortSchema,
  printSchema,
} from 'graphql';
import { largestId } from '../../database/ids.ts';
import { isRecordType } from '../../database/models.ts';
import { argumentError } from '../../errors.ts';
import { isRecord } from '../../http/json.ts';
import type { Context } from '../../schema/context.ts';
import { type GlobalId, readGlobalId } from '../../schema/globalId.ts';
import { readNodes } from '../../schema/loading/rows.ts';
import { schema } from '../../schema/schema.ts';

/** The weight of the text in the complexity of an operation: it is about as long as this many fields of a response. */
const weightOfText = 5_000;

/** The types of records. Each has both keys. */
const entities = Object.values(schema.getTypeMap()).filter(
  (type) => isObjectType(type) && isRecordType(type.name),
) as GraphQLObjectType[];

const anyType = new GraphQLScalarType({
  name: '_Any',
  description:
    'A record as other subgraphs know it: its `__typename` and one of its keys, `id` or `databaseId`.',
});

const entityType = new GraphQLUnionType({
  name: '_Entity',
  description: 'A record that other subgraphs may know.',
  types: entities,
  // `readNodes` adds `__typename` to each row.
  resolveType: ({ __typename }: { __typename: string }) => __typename,
});

const serviceType = new GraphQLObjectType({
  name: '_Service',
  description: 'What a supergraph is composed of.',
  fields: {
    sdl: {
      type: new GraphQLNonNull(GraphQLString),
      description: 'The subgraph as text.',
      extensions: { weight: weightOfText },
    },
  },
});

const entitiesField = {
  type: new GraphQLNonNull(new GraphQLList(entityType)),
  description:
    'The records that these stand for, in the same order, null where the viewer has no such record.',
  args: {
    representations: {
      type: new GraphQLNonNull(new GraphQLList(new GraphQLNonNull(anyType))),
      description: `Each with \`__typename\` and a key.`,
    },
  },
  resolve: async (
    _root: unknown,
    { representations }: { readonly representations: readonly unknown[] },
    context: Context,
    info: GraphQLResolveInfo,
  ) => {
    const named = representations.map(readRepresentation);
    const known = named.filter((each) => each !== undefined);
    const found = (await readNodes(known, { context, info })).values();
    return named.map((each) => (each && found.next().value) ?? null);
  },
};

/**
 * Reads a representation as the global id of its record, undefined if no record can have its integer id.
 * @throws a client error for a value that represents no record of this schema.
 */
function readRepresentation(given: unknown): GlobalId | undefined {
  const { __typename: typename, id, databaseId }: Record<string, unknown> = isRecord(given) ? given : {};
  if (typeof typename !== 'string' || !isRecordType(typename))
    throw reject('A representation must have a __typename that is an entity of this subgraph');
  const named = typeof id === 'string' ? readGlobalId(id, 'representations') : { typename, id: databaseId };
  const number = named?.id;
  if (named?.typename !== typename || typeof number !== 'number' || !Number.isInteger(number))
    throw reject(
      `A representation of ${typename} must have its global id as id, or its integer id as databaseId`,
    );
  return number >= 1 && number <= largestId ? { typename, id: number } : undefined;
}

const reject = (message: string) => argumentError('representations', message);

/** The oldest version of the specification that has everything used here, so that every gateway and composition supports it. */
const link = '@link(url: "https://specs.apollo.dev/federation/v2.0", import: ["@key", "@shareable"])';
const keys = '@key(fields: "id") @key(fields: "databaseId")';

/**
 * The text of the subgraph, from which a supergraph is composed: the schema with the directives of federation. Entities have keys,
 * and all other object types are shareable, since other subgraphs may have them as well, such as the `PageInfo` of Relay.
 */
function printSubgraph(): string {
  const isRoot = new Set(['Query', 'Mutation', 'Subscription']);
  return (
    printSchema(lexicographicSortSchema(schema))
      .replace(/^schema/m, `schema ${link}`)
      // Composition does not support `@oneOf` yet. The subgraph itself still requires exactly one of the fields.
      .replace(/^(input \w+) @oneOf/gm, '$1')
      .replace(/^type (\w+)[^{\n]*(?= \{$)/gm, (head, name) =>
        isRoot.has(name) ? head : `${head} ${isRecordType(name) ? keys : '@shareable'}`,
      )
  );
}

/** @param mayBeRead whether clients may read the text of the subgraph, which is the schema. */
export function createSubgraph(mayBeRead: boolean): GraphQLSchema {
  const { query, types, ...others } = schema.toConfig();
  if (!query) throw new Error('the schema has no queries');
  const { fields, ...ofQuery } = query.toConfig();
  const sdl = printSubgraph();
  const service = {
    type: new GraphQLNonNull(serviceType),
    description: 'What this subgraph offers.',
    extensions: { describesSchema: true },
    resolve: () => ({ sdl }),
  };
  return new GraphQLSchema({
    ...others,
    query: new GraphQLObjectType({
      ...ofQuery,
      fields: { ...fields, _entities: entitiesField, ...(mayBeRead && { _service: service }) },
    }),
    types: types.filter((type) => type !== query),
  });
}
