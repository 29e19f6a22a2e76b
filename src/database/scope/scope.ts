/**
 * The main file of this folder: restricts Prisma's client to a viewer. Every read and every write has the viewer's condition of the
 * table of models, at every depth: in relations that are selected, counted, filtered by or connected. What Prisma cannot restrict,
 * and what this folder does not know, is an error. Code that takes the whole client from it, by `$extends` or `$parent`, gets around it.
 */

import { AsyncLocalStorage } from 'node:async_hooks';
import { columnsOf } from '../dataModel.ts';
import type { PrismaClient } from '../generated/prisma/client.ts';
import { conditionOf, type ModelName, type ViewerRef, type VisibleModel } from '../models.ts';
import { type Args, type Cursor, fieldsOf, refuse, restrictedList } from './reads.ts';
import { created, written } from './writes.ts';

/** The properties of the client that have the operations of a model each. */
type Delegates = Pick<PrismaClient, Uncapitalize<VisibleModel>>;

/** The client of a viewer. It takes no SQL. */
export type ScopedClient = Delegates & {
  $transaction<Result>(
    run: (client: Delegates) => Promise<Result>,
    options?: Parameters<PrismaClient['$transaction']>[1],
  ): Promise<Result>;
};

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
        // The check would need another connection.
        if (cursors.length > 0 && withinTransaction.getStore())
          refuse('A transaction of a viewer takes no cursors');
        for (const cursor of cursors) await checkCursor(client, viewer, cursor);
        return query(restricted as typeof args);
      },
    },
  });
  // An extension of queries changes no type but that of `$transaction`.
  const extended = scoped as unknown as ScopedClient;
  const transact: ScopedClient['$transaction'] = (...given) =>
    withinTransaction.run(true, () => extended.$transaction(...given));
  return new Proxy(extended, {
    get: (target, name) => (name === '$transaction' ? transact : Reflect.get(target, name)),
  });
}

/** Whether the code that runs is that of a transaction of a viewer. */
const withinTransaction = new AsyncLocalStorage<boolean>();

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
  const where = { AND: [conditionOf(model, viewer), ...columns] } as object;
  if ((await client[delegateOf(model)].count({ where })) > 0) return;
  delete list.cursor;
  list.where = { OR: [] };
}

/** The operations that create rows without finding any. */
const creates = ['create', 'createMany', 'createManyAndReturn'];
const changes = /^(update|upsert|delete)/;
const takesCursor = ['findMany', 'findFirst', 'findFirstOrThrow'];

function argumentsOf(
  scope: Parameters<typeof restrictedList>[0],
  model: ModelName,
  operation: string,
  { data, create, update, ...others }: Args = {},
): Args {
  const { viewer } = scope;
  const isCreate = creates.includes(operation);
  if (others.cursor && !takesCursor.includes(operation)) refuse(`${operation} takes no cursor`);
  const condition = conditionOf(model, viewer, changes.test(operation) ? 'writableBy' : 'visibleTo');
  const restricted = restrictedList(scope, model, others, condition);
  if (isCreate) delete restricted.where;
  if (data !== undefined)
    restricted.data = isCreate
      ? created(viewer, model, data, operation !== 'create')
      : written(viewer, model, data);
  if (create !== undefined) restricted.create = created(viewer, model, create);
  if (update !== undefined) restricted.update = written(viewer, model, update);
  return restricted;
}

/** Throws for what a type or a field selects, unless it depends on arguments, what each query would throw. */
export const checkSelection = (model: ModelName, selected: Args): void =>
  void fieldsOf({ viewer: { id: 0 }, incomplete: [], cursors: [] }, model, selected);
