/** The schema builder, with its plugins. */

import SchemaBuilder from '@pothos/core';
import PrismaPlugin from '@pothos/plugin-prisma';
import RelayPlugin from '@pothos/plugin-relay';
import { GraphQLError, type ValueNode, valueFromASTUntyped } from 'graphql';
import type PrismaTypes from '../database/generated/pothos.ts';
import { getDatamodel } from '../database/generated/pothos.ts';
import type { PrismaClient } from '../database/generated/prisma/client.ts';
import type { ScopedClient } from '../database/scope/scope.ts';
import type { Context } from './context.ts';
import { writeGlobalId } from './globalId.ts';
import { isoInstant, isoTime } from './isoInstant.ts';
import { pageSize } from './loading/pagination.ts';
import { readsProperty } from './loading/rows.ts';

export interface BuilderTypes {
  PrismaTypes: PrismaTypes;
  Context: Context;
  Scalars: {
    DateTime: { Input: Date; Output: Date };
    LocalDate: { Input: string; Output: string };
    ID: { Input: string; Output: string };
  };
  DefaultFieldNullability: false;
  DefaultEdgesNullability: { list: false; items: false };
  DefaultNodeNullability: false;
}

const sizes = `An integer from 1 to ${pageSize.highest}.`;

/** The options of the builder. A test makes a schema of its own with them. */
export const builderOptions = {
  plugins: [PrismaPlugin, RelayPlugin],
  defaultFieldNullability: false,
  prisma: {
    // Pothos uses the delegates of models alone.
    client: ({ prisma }: Context) => prisma as ScopedClient & Pick<PrismaClient, '$connect'>,
    dmmf: getDatamodel(),
    filterConnectionTotalCount: true,
    defaultConnectionSize: pageSize.default,
    maxConnectionSize: pageSize.highest,
  },
  relay: {
    cursorType: 'String',
    edgesFieldOptions: {
      nullable: { list: false, items: false },
      description: 'The records of this page, each with its cursor.',
    },
    nodeFieldOptions: { nullable: false, description: 'The record.', extensions: readsProperty('node') },
    nodesOnConnection: { description: 'The records of this page.' },
    cursorFieldOptions: { description: 'Where the record stands in its list, for `after` and `before`.' },
    pageInfoFieldOptions: {
      description: 'Whether and where the list goes on.',
    },
    pageInfoTypeOptions: { description: 'Where a page stands in its list.' },
    hasNextPageFieldOptions: { description: 'Whether more records follow this page.' },
    hasPreviousPageFieldOptions: { description: 'Whether other records come before this page.' },
    startCursorFieldOptions: { description: 'Cursor of the first record, null for an empty page.' },
    endCursorFieldOptions: { description: 'Cursor of the last record, null for an empty page.' },
    firstArgOptions: {
      description: `How many records, from the start of the list. ${sizes}`,
    },
    lastArgOptions: {
      description: `How many records, from the end of the list, in place of \`first\`. ${sizes}`,
    },
    afterArgOptions: { description: 'Only records after this cursor.' },
    beforeArgOptions: { description: 'Only records before this cursor.' },
    nodeTypeOptions: { description: 'A record with an id that is unique across all types.' },
    idFieldOptions: { description: 'Global id: unique across all types, for caches and for `node(id:)`.' },
    // `types/node.ts` defines these two queries, so that the error for an invalid id names its argument.
    nodeQueryOptions: false,
    nodesQueryOptions: false,
    encodeGlobalID: writeGlobalId,
    defaultConnectionTypeOptions: { description: 'A page of a list.' },
    defaultEdgeTypeOptions: { description: 'A record at its place in a list.' },
  },
} satisfies ConstructorParameters<typeof SchemaBuilder<BuilderTypes>>[0];

export const builder = new SchemaBuilder<BuilderTypes>(builderOptions);

builder.scalarType('DateTime', {
  description:
    'An instant in the format of RFC 3339: in responses always in UTC with three digits of a second, such as ' +
    '`2026-02-17T12:00:00.000Z`. One before the year 1 or after the year 9999, or that never comes, is the first or the last ' +
    'instant of these. Input may have any offset from UTC, and must have one. It may leave out the seconds; what is finer than a ' +
    'millisecond is cut off before anything is compared, and leap seconds are rejected.',
  serialize: isoTime,
  parseValue: (value) => readInstant(value),
  parseLiteral: (node, variables) => readInstant(valueFromASTUntyped(node, variables), node),
});

/**
 * Reads an instant.
 * @param node the value in the document, unless the value came in a variable.
 * @throws {GraphQLError} for an invalid value. Like an error of graphql-js, it points to the value in the document.
 */
function readInstant(value: unknown, node?: ValueNode): Date {
  // Compiled code parses the values of variables a second time.
  if (value instanceof Date) return value;
  const text = isoInstant.safeParse(value).data;
  if (text === undefined) {
    throw new GraphQLError(
      'DateTime must be ISO 8601 with an offset from UTC, such as "2026-02-17T12:00:00Z", with a day and a time that exist',
      node ? { nodes: node } : {},
    );
  }
  return new Date(text);
}

builder.queryType({
  description:
    'What can be read: what belongs to you, and templates that you have imported. Every field is nullable, so that one that fails does not remove the others.',
});
builder.mutationType({
  description: 'What can be changed. A field that fails is null, and the others are carried out.',
});
