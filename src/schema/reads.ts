/**
 * How fields read records. Every query, link and list of the schema goes through these few resolvers, and each
 * of them sees only what `visible` shows the viewer: no other code of the schema asks the database for rows.
 */

import { queryFromInfo } from '@pothos/plugin-prisma';
import type { GraphQLResolveInfo } from 'graphql';
import type { Viewer } from '../auth/viewer.ts';
import type { Context } from '../context.ts';
import type PrismaTypes from '../generated/pothos.ts';
import type { Prisma, PrismaClient } from '../generated/prisma/client.ts';
import { placeOf } from '../loaders.ts';
import { type Order, orderBy, type PageArguments, type PagePlan, planPage } from './page.ts';

type Model = keyof typeof visible;
type Row<M extends Model> = PrismaTypes[M]['Shape'];

const owned = ({ id }: Viewer) => ({ ownerId: id });

/** Owned and imported templates (decisions, "Who sees what"). */
function visibleTemplate({ id }: Viewer) {
  return { OR: [{ ownerId: id }, { imports: { some: { userId: id } } }] };
}

/** Who sees what: for each model, the rows that exist for the viewer. */
export const visible = {
  User: ({ id }) => ({ id }),
  DttDevice: owned,
  DttTemplate: visibleTemplate,
  DttTemplateSegment: (viewer) => ({ template: visibleTemplate(viewer) }),
  DttSession: owned,
  TrainerSegment: (viewer) => ({ session: owned(viewer) }),
  LkbxDevice: owned,
  LockTemplate: owned,
  LockSession: owned,
  LockSegment: (viewer) => ({ session: owned(viewer) }),
  OssmDevice: owned,
} satisfies { [M in Prisma.ModelName]?: (viewer: Viewer) => PrismaTypes[M]['Where'] };

/** How the lists are ordered (decisions, "REST: order and shape"). */
const orders: { [M in Model]: Order } = {
  User: {},
  DttDevice: { by: 'lastVisited', nullable: true },
  DttTemplate: { by: 'createdDate' },
  DttTemplateSegment: {},
  DttSession: { by: 'createdAt' },
  TrainerSegment: {},
  LkbxDevice: { by: 'lastVisited', nullable: true },
  LockTemplate: { by: 'createdAt' },
  LockSession: { by: 'startDate' },
  LockSegment: {},
  OssmDevice: { by: 'lastVisited', nullable: true },
};

/**
 * The same rows as `visible` shows, for a list. "Owned or imported" is an OR over two tables, for which
 * PostgreSQL would read the templates of all users, so the ids of the imported ones are read first.
 */
async function visibleInList(model: Model, { database, viewer, loaders }: Context): Promise<object> {
  if (model !== 'DttTemplate') return visible[model](viewer);
  const imports = await loaders.once('imports of the viewer', () =>
    database.dttTemplateImport.findMany({ where: { userId: viewer.id }, select: { templateId: true } }),
  );
  if (imports.length === 0) return owned(viewer);
  return { OR: [owned(viewer), { id: { in: imports.map(({ templateId }) => templateId) } }] };
}

/** What is used of a Prisma delegate. */
interface Delegate<R> {
  findFirst(query: object): Promise<R | null>;
  findMany(query: object): Promise<R[]>;
  count(query: object): Promise<number>;
}

function delegateOf<M extends Model>(database: PrismaClient, model: M): Delegate<Row<M>> {
  // Each delegate has these methods, but TypeScript cannot call a method of a union of delegates.
  return database[`${model[0]?.toLowerCase()}${model.slice(1)}` as keyof PrismaClient] as unknown as Delegate<
    Row<M>
  >;
}

/**
 * What the field needs of its rows: the relations beneath it, as a part of a Prisma query. Pothos notes that they
 * are loaded, for this one place in the answer. So a field that shares its query with the same field of other
 * parents still calls this for each of them; where it did not, Pothos would load the relations row by row.
 */
function selectionOf(context: Context, info: GraphQLResolveInfo, paths?: string[][]): object {
  return queryFromInfo({ context, info, ...(paths && { paths }) });
}

/** The one row that the condition names, if the viewer may see it. */
export function readOne<M extends Model>(
  model: M,
  where: object,
  context: Context,
  info: GraphQLResolveInfo,
) {
  return delegateOf(context.database, model).findFirst({
    ...selectionOf(context, info),
    where: { AND: [where, visible[model](context.viewer)] },
  });
}

/** The rows that global ids name, in the same order, null where the viewer may not see one: a statement per type. */
export async function readNodes(
  ids: readonly { typename: string; id: string }[],
  context: Context,
  info: GraphQLResolveInfo,
): Promise<(object | null)[]> {
  const rows = new Map<string, object>();
  const readType = async (typename: Model) => {
    const named = ids.filter((id) => id.typename === typename).map(({ id }) => Number(id));
    const found = await delegateOf(context.database, typename).findMany({
      ...queryFromInfo({ context, info, typeName: typename }),
      where: { AND: [{ id: { in: named } }, visible[typename](context.viewer)] },
    });
    for (const row of found) rows.set(`${typename}:${row.id}`, { ...row, __typename: typename });
  };
  // Only types that are visible have global ids.
  await Promise.all([...new Set(ids.map(({ typename }) => typename as Model))].map(readType));
  return ids.map(({ typename, id }) => rows.get(`${typename}:${id}`) ?? null);
}

/** Finds the row of a Relay node: the condition that names it, and that the viewer may see it. */
export const nodeById =
  <M extends Model>(model: M) =>
  (id: string, { viewer }: Context) =>
    // TypeScript does not follow which model's filter `visible[model]` is; `visible` itself is checked.
    ({ id: Number(id), AND: [visible[model](viewer)] }) as unknown as PrismaTypes[M]['WhereUnique'];

/** What a subscription field needs beside the options of the query field that it follows. */
export function following<
  Resolve extends (parent: unknown, args: never, context: Context, info: GraphQLResolveInfo) => unknown,
>(resolve: Resolve) {
  return {
    subscribe: (_root: unknown, _args: unknown, { follow }: Context) => follow(),
    resolve: ((parent, args, context, info) => {
      context.loaders.clear();
      return resolve(parent, args, context, info);
    }) as Resolve,
  };
}

/** Resolver of the one record of the viewer's that a condition names, if there is one. */
export const matching =
  <M extends Model>(model: M, where: (viewer: Viewer) => object) =>
  (_parent: unknown, _args: unknown, context: Context, info: GraphQLResolveInfo) =>
    readOne(model, where(context.viewer), context, info);

/** Resolver of a record by its integer id. */
export const byDatabaseId =
  <M extends Model>(model: M) =>
  (_parent: unknown, { databaseId }: { databaseId: number }, context: Context, info: GraphQLResolveInfo) =>
    readOne(model, { id: databaseId }, context, info);

/** The first rows of a list, for a field that mixes several models. */
export function readFirst<M extends Model>(
  model: M,
  take: number,
  context: Context,
  info: GraphQLResolveInfo,
) {
  return delegateOf(context.database, model).findMany({
    ...queryFromInfo({ context, info, typeName: model }),
    where: visible[model](context.viewer),
    orderBy: orderBy(orders[model]),
    take,
  });
}

/** Resolver of the newest record of a list. */
export const newest =
  <M extends Model>(model: M) =>
  (_parent: unknown, _args: unknown, context: Context, info: GraphQLResolveInfo) =>
    delegateOf(context.database, model).findFirst({
      ...selectionOf(context, info),
      where: visible[model](context.viewer),
      orderBy: orderBy(orders[model]),
    });

/** Resolver of a to-one link: the record whose id the parent holds, or null when the viewer may not see it. */
export const link =
  <M extends Model, Parent>(model: M, idOf: (parent: Parent) => number | null) =>
  async (
    parent: Parent,
    _args: unknown,
    context: Context,
    info: GraphQLResolveInfo,
  ): Promise<Row<M> | null> => {
    const id = idOf(parent);
    if (id === null) return null;
    const selection = selectionOf(context, info);
    const loader = context.loaders.at(info, () => async (ids) => {
      const rows = await delegateOf(context.database, model).findMany({
        ...selection,
        where: { AND: [{ id: { in: [...ids] } }, visible[model](context.viewer)] },
      });
      return new Map(rows.map((row) => [row.id, row]));
    });
    return (await loader.load(id)) ?? null;
  };

/** Resolver of a list of all the viewer's records of a kind: the same for all parents, so it is read once. */
export const list =
  <M extends Model>(model: M) =>
  async (_parent: unknown, args: PageArguments, context: Context, info: GraphQLResolveInfo) => {
    const delegate = delegateOf(context.database, model);
    const page = planPage(orders[model], args);
    const selection = selectionOf(context, info, nodePaths);
    const where = await visibleInList(model, context);
    const rows = await context.loaders.once(placeOf(info), () =>
      delegate.findMany({ ...selection, ...inScope(page, where) }),
    );
    return {
      ...page.connect(rows),
      totalCount: (countInfo: GraphQLResolveInfo) =>
        context.loaders.once(placeOf(countInfo), () => delegate.count({ where })),
    };
  };

/**
 * Resolver of a list that hangs off a record: those of the viewer's `model` rows that `relation` ties to the
 * parent. The pages of all parents at the same place are read in one statement.
 */
export const listUnder =
  <P extends Model, M extends Model>(parentModel: P, relation: PrismaTypes[P]['ListRelations'], model: M) =>
  async (parent: { id: number }, args: PageArguments, context: Context, info: GraphQLResolveInfo) => {
    const where = visible[model](context.viewer);
    const page = planPage(orders[model], args);
    const query = { ...selectionOf(context, info, nodePaths), ...inScope(page, where) };
    const fromParents =
      <Value>(select: object, pick: (row: Record<string, unknown>) => Value) =>
      async (ids: readonly number[]) => {
        const rows = await delegateOf(context.database, parentModel).findMany({
          where: { id: { in: [...ids] } },
          select: { id: true, ...select },
        });
        return new Map(rows.map((row) => [row.id, pick(row)]));
      };

    // What Prisma answers follows from the `select` beside each of the two casts.
    const rows = await context.loaders
      .at(info, () => fromParents({ [relation]: query }, (row) => row[relation] as Row<M>[]))
      .load(parent.id);
    return {
      ...page.connect(rows ?? []),
      totalCount: async (countInfo: GraphQLResolveInfo) => {
        const counts = context.loaders.at(countInfo, () =>
          fromParents(
            { _count: { select: { [relation]: { where } } } },
            (row) => (row._count as Record<string, number>)[relation],
          ),
        );
        return (await counts.load(parent.id)) ?? 0;
      },
    };
  };

/** Where the rows of a connection are in the selection of its field. */
const nodePaths = [['nodes'], ['edges', 'node']];

function inScope({ query }: PagePlan, where: object): object {
  return { ...query, where: query.where ? { AND: [where, query.where] } : where };
}
