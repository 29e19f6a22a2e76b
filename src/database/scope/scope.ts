/**
 * The main file of this folder: restricts Prisma's client to a viewer. Every read has the viewer's condition of the table of models, at
 * every depth: in relations that are selected, counted or filtered by. It writes nothing, and takes no SQL. What Prisma cannot
 * restrict, and what this folder does not know, is an error. Code that takes the whole client from it, by `$extends` or `$parent`, gets around it.
 */

import { columnsOf } from '../dataModel.ts';
import type { PrismaClient } from '../generated/prisma/client.ts';
import { type ModelName, type ViewerRef, type VisibleModel, visibleTo } from '../models.ts';
import { type Args, type Cursor, refuse, restrictedList } from './reads.ts';

/** The client of a viewer. */
export type ScopedClient = Pick<PrismaClient, Uncapitalize<VisibleModel>>;

/** @param incomplete models whose rows may be missing here, which are not read. */
export function scopedTo(
  client: PrismaClient,
  viewer: ViewerRef,
  incomplete: readonly ModelName[] = [],
): ScopedClient {
  const scoped = client.$extends({
    query: {
      async $allOperations({ model, operation, args, query }) {
        if (model === undefined) return refuse(`${operation} is not restricted to the viewer`);
        const cursors: Cursor[] = [];
        // Prisma names its own models.
        const restricted = argumentsOf(
          { viewer, incomplete, cursors },
          model as ModelName,
          operation,
          args as Args,
        );
        for (const cursor of cursors) await checkCursor(client, viewer, cursor);
        return query(restricted as typeof args);
      },
    },
  });
  // An extension of queries changes no type of a model.
  return scoped as unknown as ScopedClient;
}

/** The property of the client for a model. All of them have the same operations. */
export const delegateOf = (model: ModelName) =>
  `${model.charAt(0).toLowerCase()}${model.slice(1)}` as Uncapitalize<'User'>;

/** Empties a list whose cursor is a row that the viewer may not see, as if there were none. Prisma would begin at its place. */
async function checkCursor(
  client: PrismaClient,
  viewer: ViewerRef,
  { model, at, list }: Cursor,
): Promise<void> {
  // Only a query for a single row takes the name of a key with several columns.
  const columns = Object.entries(at).map(([name, value]) =>
    columnsOf(model).includes(name) ? { [name]: value } : value,
  );
  const where = { AND: [visibleTo(viewer, model), ...columns] } as object;
  if ((await client[delegateOf(model)].count({ where })) > 0) return;
  delete list.cursor;
  list.where = { OR: [] };
}

const reads = /^(find|count|aggregate|groupBy)/;
const takesCursor = ['findMany', 'findFirst', 'findFirstOrThrow'];

function argumentsOf(
  scope: Parameters<typeof restrictedList>[0],
  model: ModelName,
  operation: string,
  args: Args = {},
): Args {
  if (!reads.test(operation)) refuse(`The client of a viewer only reads, and takes no ${operation}`);
  if (args.cursor && !takesCursor.includes(operation)) refuse(`${operation} takes no cursor`);
  return restrictedList(scope, model, args);
}
