/** Records by their global ids. */

import type { GraphQLError } from 'graphql';
import { argumentError } from '../../errors.ts';
import { builder } from '../builder.ts';
import { nullOnlyWithError } from '../fields.ts';
import { readGlobalId } from '../globalId.ts';
import { pageSize } from '../loading/pagination.ts';
import { readNodes } from '../loading/rows.ts';

builder.queryFields((t) => ({
  node: t.field({
    type: builder.nodeInterfaceRef(),
    nullable: true,
    description: 'The record with this global id, or null if you have no such record.',
    args: { id: t.arg.id({ required: true, description: 'A global id, as any `id` field gives it.' }) },
    resolve: async (_root, { id }, context, info) =>
      (await readNodes([readGlobalId(id, 'id')], { context, info }))[0],
  }),
  nodes: t.field({
    type: [builder.nodeInterfaceRef()],
    nullable: { list: true, items: true },
    extensions: nullOnlyWithError,
    description:
      'The records with these global ids, in the same order, null for ids of which you have no record. What is no global id is ' +
      'null as well, with an error.',
    args: {
      ids: t.arg.idList({
        required: true,
        description: `Global ids, as any \`id\` field gives them. At most ${pageSize.highest}.`,
      }),
    },
    resolve: async (_root, { ids }, context, info) => {
      if (ids.length > pageSize.highest)
        throw argumentError('ids', `ids must have at most ${pageSize.highest} items`);
      const named = ids.map((id) => {
        try {
          return readGlobalId(id, 'ids');
        } catch (error) {
          // It throws client errors alone.
          return error as GraphQLError;
        }
      });
      const valid = named.flatMap((each) => (each instanceof Error ? [] : each));
      const found = (await readNodes(valid, { context, info })).values();
      // An error in the place of a record is that of this place alone.
      return named.map((each) => (each instanceof Error ? each : (found.next().value ?? null)));
    },
  }),
}));
