/**
 * The schema as a subgraph of a supergraph (Apollo Federation 2). It has two more queries: a federation gateway reads records that other
 * subgraphs refer to by `_entities`, and the text of the subgraph by `_service`. Loaded only if FEDERATION is on.
 */

import {
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  GraphQLScalarType,
  GraphQLSchema,
  GraphQLString,
  GraphQLUnionType,
  isObjectType,
} from 'graphql';
import { isRecordType } from '../../database/models.ts';
import { argumentError } from '../../errors.ts';
import type { Context } from '../context.ts';
import { readNodes } from '../loading/rows.ts';
import { schema } from '../schema.ts';
import { readRepresentation } from './representations.ts';
import { printSubgraph } from './sdl.ts';

/** How many representations one request may have. The complexity of the operation limits their fields as well. */
const mostRepresentations = 1_000;

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

interface EntitiesArguments {
  readonly representations: readonly unknown[];
}

const entitiesField = {
  type: new GraphQLNonNull(new GraphQLList(entityType)),
  description:
    'The records that these stand for, in the same order, null where the viewer has no such record.',
  args: {
    representations: {
      type: new GraphQLNonNull(new GraphQLList(new GraphQLNonNull(anyType))),
      description: `Each with \`__typename\` and a key. At most ${mostRepresentations}.`,
    },
  },
  resolve: async (
    _root: unknown,
    { representations }: EntitiesArguments,
    context: Context,
    info: Parameters<typeof readNodes>[2],
  ) => {
    if (representations.length > mostRepresentations)
      throw argumentError(
        'representations',
        `representations must have at most ${mostRepresentations} items`,
      );
    const named = representations.map(readRepresentation);
    const found = (
      await readNodes(
        named.filter((each) => each !== undefined),
        context,
        info,
      )
    ).values();
    return named.map((each) => (each && found.next().value) ?? null);
  },
};

/** @param mayBeRead whether clients may read the text of the subgraph, which is the schema. */
export function createSubgraph(mayBeRead: boolean): GraphQLSchema {
  const { query, types, ...others } = schema.toConfig();
  if (!query) throw new Error('the schema has no queries');
  const { fields, ...ofQuery } = query.toConfig();
  const sdl = printSubgraph(schema, entities);
  const service = {
    type: new GraphQLNonNull(serviceType),
    description: 'What this subgraph offers.',
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
