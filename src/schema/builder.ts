/** The schema builder: the only place with plugins. */

import SchemaBuilder from '@pothos/core';
import PrismaPlugin from '@pothos/plugin-prisma';
import RelayPlugin from '@pothos/plugin-relay';
import type PrismaTypes from '../database/generated/pothos.ts';
import { getDatamodel } from '../database/generated/pothos.ts';
import { readId } from '../database/ids.ts';
import { clientError } from '../errors.ts';
import type { Context } from './context.ts';
import { pageSize } from './loading/pagination.ts';
import { readNodes, visible } from './loading/reads.ts';

export interface BuilderTypes {
  PrismaTypes: PrismaTypes;
  Context: Context;
  Scalars: {
    DateTime: { Input: never; Output: Date };
    ID: { Input: string; Output: string };
  };
  Connection: { totalCount: () => Promise<number> };
  DefaultFieldNullability: false;
  DefaultEdgesNullability: { list: false; items: false };
  DefaultNodeNullability: false;
}

const sizes = `An integer from 1 to ${pageSize.highest}.`;

export const builder = new SchemaBuilder<BuilderTypes>({
  plugins: [PrismaPlugin, RelayPlugin],
  defaultFieldNullability: false,
  prisma: {
    // The plugin's own fields would read rows without asking whose they are.
    client: () => {
      throw new Error('rows are read in reads.ts');
    },
    dmmf: getDatamodel(),
  },
  relay: {
    cursorType: 'String',
    edgesFieldOptions: {
      nullable: { list: false, items: false },
      description: 'The records of this page, each with its cursor.',
    },
    nodeFieldOptions: { nullable: false, description: 'The record.' },
    nodesOnConnection: { description: 'The records of this page.' },
    cursorFieldOptions: { description: 'Where the record stands in its list, for `after` and `before`.' },
    pageInfoFieldOptions: { description: 'Whether and where the list goes on.' },
    pageInfoTypeOptions: { description: 'Where a page stands in its list.' },
    hasNextPageFieldOptions: { description: 'Whether older records follow this page.' },
    hasPreviousPageFieldOptions: { description: 'Whether newer records come before this page.' },
    startCursorFieldOptions: { description: 'Cursor of the first record, null for an empty page.' },
    endCursorFieldOptions: { description: 'Cursor of the last record, null for an empty page.' },
    firstArgOptions: {
      description: `How many records, from the start of the list. ${sizes} ${pageSize.default} unless told otherwise.`,
    },
    lastArgOptions: { description: `How many records, from the end of the list. ${sizes}` },
    afterArgOptions: { description: 'Only records behind this cursor.' },
    beforeArgOptions: { description: 'Only records before this cursor.' },
    nodeTypeOptions: { description: 'A record with an id that is unique across all types.' },
    idFieldOptions: { description: 'Global id: unique across all types, for caches and for `node(id:)`.' },
    nodeQueryOptions: {
      description: 'The record with this global id, or null when the viewer has none such.',
      args: { id: { description: 'A global id, as any `id` field gives it.' } },
      resolve: async (_root, { id }, context, info) => (await readNodes([id], context, info))[0] ?? null,
    },
    nodesQueryOptions: {
      nullable: { list: false, items: true },
      description:
        'The records with these global ids, in the same order, null where the viewer has none such.',
      args: {
        ids: { description: `Global ids, as any \`id\` field gives them. At most ${pageSize.highest}.` },
      },
      resolve: (_root, { ids }, context, info) => {
        if (ids.length > pageSize.highest)
          throw clientError('BAD_USER_INPUT', `ids must have at most ${pageSize.highest} items`);
        return readNodes(ids, context, info);
      },
    },
    encodeGlobalID: (type, id) => Buffer.from(`${type}:${id}`).toString('base64url'),
    decodeGlobalID,
    defaultConnectionTypeOptions: { description: 'A page of a list, newest first.' },
    defaultEdgeTypeOptions: { description: 'A record at its place in a list.' },
  },
});

builder.scalarType('DateTime', {
  description: 'An instant as ISO 8601 in UTC with milliseconds, such as `2026-02-17T12:00:00.000Z`.',
  serialize: (instant) => instant.toISOString(),
  parseValue: () => {
    throw clientError('BAD_USER_INPUT', 'DateTime is not accepted as input');
  },
});

builder.globalConnectionField('totalCount', (t) =>
  t.int({
    description: 'How many records the whole list has.',
    resolve: (connection) => connection.totalCount(),
  }),
);

builder.queryType({ description: 'What can be read. Everything belongs to the viewer.' });
builder.mutationType({ description: 'What can be changed.' });
builder.subscriptionType({
  description: 'What can be followed: each delivers how things are now, and again after every change.',
});

/** @throws a client error for what `encodeGlobalID` cannot have written. */
function decodeGlobalID(globalId: string): { typename: string; id: string } {
  const text = Buffer.from(globalId, 'base64url').toString();
  const [, typename, id] = /^(\w+):(\d+)$/.exec(text) ?? [];
  if (
    typename === undefined ||
    id === undefined ||
    readId(id) === undefined ||
    !Object.hasOwn(visible, typename)
  ) {
    throw clientError(
      'BAD_USER_INPUT',
      `${JSON.stringify(globalId.slice(0, 64))} is not a global id of this schema`,
    );
  }
  return { typename, id };
}
