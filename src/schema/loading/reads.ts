/**
 * How fields read records. Every query, link and list of the schema goes through these few resolvers, and each
 * of them sees only what `visible` shows the viewer: no other code of the schema asks the database for rows.
 */

import type { GraphQLResolveInfo } from 'graphql';
import type { Viewer } from '../../auth/viewer.ts';
import type PrismaTypes from '../../database/generated/pothos.ts';
import type { Prisma } from '../../database/generated/prisma/client.ts';
import type { PlannedQuery } from '../../database/reader/query.ts';
import type { Context } from '../context.ts';
import { placeOf } from './loaders.ts';
import { type Order, orderBy, type PageArguments, type PagePlan, planPage } from './pagination.ts';
import { type Needs, nodePaths, selectFor } from './selection.ts';

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
async function visibleInList(model: Model, { sql, viewer, loaders }: Context): Promise<object> {
  if (model !== 'DttTemplate') return visible[model](viewer);
  const imports = (await loaders.once('imports of the viewer', () =>
    sql.findMany('DttTemplateImport', { where: { userId: viewer.id }, select: { templateId: true } }),
  )) as { templateId: number }[];
  if (imports.length === 0) return owned(viewer);
  return { OR: [owned(viewer), { id: { in: imports.map(({ templateId }) => templateId) } }] };
}

/** Reads rows of a model. What is selected may be less than a whole row: `selectFor` sees to it that it is enough. */
function read<M extends Model>({ sql }: Context, model: M, query: PlannedQuery): Promise<Row<M>[]> {
  return sql.findMany(model, query) as Promise<Row<M>[]>;
}

async function readFirst<M extends Model>(
  context: Context,
  model: M,
  query: PlannedQuery,
): Promise<Row<M> | null> {
  const [row] = await read(context, model, { ...query, take: 1 });
  return row ?? null;
}

/** The one row that the condition names, if the viewer may see it. */
export function readOne<M extends Model>(
  model: M,
  where: object,
  context: Context,
  info: GraphQLResolveInfo,
) {
  return readFirst(context, model, {
    select: selectFor(info, context.viewer),
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
    const found = await read(context, typename, {
      select: selectFor(info, context.viewer, { typeName: typename }),
      where: { AND: [{ id: { in: named } }, visible[typename](context.viewer)] },
    });
    for (const row of found) rows.set(`${typename}:${row.id}`, { ...row, __typename: typename });
  };
  // Only types that are visible have global ids.
  await Promise.all([...new Set(ids.map(({ typename }) => typename as Model))].map(readType));
  return ids.map(({ typename, id }) => rows.get(`${typename}:${id}`) ?? null);
}

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
export function readSome<M extends Model>(
  model: M,
  take: number,
  context: Context,
  info: GraphQLResolveInfo,
) {
  return read(context, model, {
    select: { ...selectFor(info, context.viewer, { typeName: model }), ...orderColumn(model) },
    where: visible[model](context.viewer),
    orderBy: orderBy(orders[model]),
    take,
  });
}

/** Resolver of the newest record of a list. */
export const newest =
  <M extends Model>(model: M) =>
  (_parent: unknown, _args: unknown, context: Context, info: GraphQLResolveInfo) =>
    readFirst(context, model, {
      select: selectFor(info, context.viewer),
      where: visible[model](context.viewer),
      orderBy: orderBy(orders[model]),
    });

/** A to-one link, by the column that holds its id: null when the viewer may not see the record. */
export function link<M extends Model, Column extends string>(model: M, column: Column) {
  return {
    extensions: needing({ columns: [column] }),
    resolve: async (
      parent: Readonly<Record<Column, number | null>>,
      _args: unknown,
      context: Context,
      info: GraphQLResolveInfo,
    ): Promise<Row<M> | null> => {
      const id = parent[column];
      if (id === null) return null;
      const loader = context.loaders.at(placeOf(info), () => async (ids) => {
        const rows = await read(context, model, {
          select: selectFor(info, context.viewer),
          where: { AND: [{ id: { in: [...ids] } }, visible[model](context.viewer)] },
        });
        return new Map(rows.map((row) => [row.id, row]));
      });
      return (await loader.load(id)) ?? null;
    },
  };
}

/** The rows of a relation that are part of a record, read together with it. */
export function parts<M extends Model>(_model: M, relation: string, orderBy: object) {
  return {
    extensions: needing({ rows: { relation, query: { orderBy } } }),
    // Read with the parent, as `needs` says; the type of a row has its columns only.
    resolve: (parent: object) => (parent as Record<string, Row<M>[]>)[relation] ?? missing(relation),
  };
}

/** Whether the record has a row of the relation that meets the condition. */
export function exists(relation: string, where: (viewer: Viewer) => object) {
  return {
    extensions: needing({
      forViewer: (viewer) => ({ [relation]: { where: where(viewer), select: { id: true }, take: 1 } }),
    }),
    // As in `parts`.
    resolve: (parent: object) =>
      ((parent as Record<string, unknown[]>)[relation] ?? missing(relation)).length > 0,
  };
}

/** A list of all the viewer's records of a kind: the same for all parents, so it is read once. */
export function list<M extends Model>(model: M) {
  return {
    extensions: needing({}),
    resolve: async (_parent: unknown, args: PageArguments, context: Context, info: GraphQLResolveInfo) => {
      const page = planPage(orders[model], args);
      const where = await visibleInList(model, context);
      const rows = await context.loaders.once(placeOf(info), () =>
        read(context, model, pageOf(model, page, where, context, info)),
      );
      return {
        ...page.connect(rows),
        totalCount: () => context.loaders.once(`${model} count`, () => context.sql.count(model, where)),
      };
    },
  };
}

/**
 * A list that hangs off a record: those of the viewer's `model` rows that `relation` ties to the parent. The pages
 * of all parents at the same place are read in one statement.
 */
export function listUnder<P extends Model, M extends Model>(
  parentModel: P,
  relation: PrismaTypes[P]['ListRelations'],
  model: M,
) {
  return {
    extensions: needing({}),
    resolve: async (
      parent: { id: number },
      args: PageArguments,
      context: Context,
      info: GraphQLResolveInfo,
    ) => {
      const where = visible[model](context.viewer);
      const page = planPage(orders[model], args);
      const fromParents =
        <Value>(select: object, pick: (row: Record<string, unknown>) => Value) =>
        async (ids: readonly number[]) => {
          const rows = await read(context, parentModel, {
            where: { id: { in: [...ids] } },
            select: { id: true, ...select },
          });
          return new Map(rows.map((row) => [row.id, pick(row)]));
        };

      // What is read follows from the `select` beside each of the two casts.
      const rows = await context.loaders
        .at(placeOf(info), () =>
          fromParents(
            { [relation]: pageOf(model, page, where, context, info) },
            (row) => row[relation] as Row<M>[],
          ),
        )
        .load(parent.id);
      return {
        ...page.connect(rows ?? []),
        totalCount: async () => {
          const counts = context.loaders.at(`${parentModel} ${relation} count`, () =>
            fromParents(
              { _count: { select: { [relation]: { where } } } },
              (row) => (row._count as Record<string, number>)[relation],
            ),
          );
          return (await counts.load(parent.id)) ?? 0;
        },
      };
    },
  };
}

/** The Prisma query for one page of a list. */
function pageOf(
  model: Model,
  { query }: PagePlan,
  where: object,
  { viewer }: Context,
  info: GraphQLResolveInfo,
) {
  return {
    ...query,
    select: { ...selectFor(info, viewer, { paths: nodePaths }), ...orderColumn(model) },
    where: query.where ? { AND: [where, query.where] } : where,
  };
}

/** What a cursor is made of, beside the id. */
function orderColumn(model: Model): object {
  const { by } = orders[model];
  return by === undefined ? {} : { [by]: true };
}

const needing = (needs: Needs) => ({ needs });

function missing(relation: string): never {
  throw new Error(`a row was read without its ${relation}`);
}
