/**
 * How fields read records. Every query, link and list of the schema goes through these few resolvers, and each
 * of them sees only what `visible` shows the viewer: no other code of the schema asks the database for rows.
 */

import { queryFromInfo } from '@pothos/plugin-prisma';
import type { GraphQLResolveInfo } from 'graphql';
import type { Viewer } from '../auth/viewer.ts';
import type { Context } from '../context.ts';
import type { Table } from '../database/feed.ts';
import type PrismaTypes from '../generated/pothos.ts';
import type { Prisma, PrismaClient } from '../generated/prisma/client.ts';
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

/** The one row that the condition names, if the viewer may see it. */
export function readOne<M extends Model>(
  model: M,
  where: object,
  context: Context,
  info: GraphQLResolveInfo,
) {
  return delegateOf(context.database, model).findFirst({
    ...queryFromInfo({ context, info }),
    where: { AND: [where, visible[model](context.viewer)] },
  });
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
>(resolve: Resolve, ...tables: readonly Table[]) {
  return {
    subscribe: (_root: unknown, _args: unknown, { follow }: Context) => follow(...tables),
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
      ...queryFromInfo({ context, info }),
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
    const loader = context.loaders.at(info, () => {
      const query = queryFromInfo({ context, info });
      return async (ids) => {
        const rows = await delegateOf(context.database, model).findMany({
          ...query,
          where: { AND: [{ id: { in: [...ids] } }, visible[model](context.viewer)] },
        });
        return new Map(rows.map((row) => [row.id, row]));
      };
    });
    return (await loader.load(id)) ?? null;
  };

/** Resolver of a list of all the viewer's records of a kind. */
export const list =
  <M extends Model>(model: M) =>
  async (_parent: unknown, args: PageArguments, context: Context, info: GraphQLResolveInfo) => {
    const delegate = delegateOf(context.database, model);
    const where = visible[model](context.viewer);
    const page = planPage(orders[model], args);
    const rows = await delegate.findMany(pageQuery(page, where, context, info));
    return { ...page.connect(rows), totalCount: () => delegate.count({ where }) };
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
      .at(info, () =>
        fromParents(
          { [relation]: pageQuery(page, where, context, info) },
          (row) => row[relation] as Row<M>[],
        ),
      )
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

/** The Prisma query for the rows of a connection field. */
function pageQuery(page: PagePlan, where: object, context: Context, info: GraphQLResolveInfo): object {
  const selection = queryFromInfo({ context, info, paths: [['nodes'], ['edges', 'node']] });
  return {
    ...selection,
    ...page.query,
    where: page.query.where ? { AND: [where, page.query.where] } : where,
  };
}
