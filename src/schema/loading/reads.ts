/**
 * How fields read records. Every query, link and list of the schema goes through these few resolvers, and each
 * of them sees only what `visible` shows the viewer: no other code of the schema asks the database for rows.
 */

import type { GraphQLResolveInfo } from 'graphql';
import type { Viewer } from '../../auth/viewer.ts';
import type PrismaTypes from '../../database/generated/pothos.ts';
import { type PlannedQuery, Slot, type SlotValues } from '../../database/reader/query.ts';
import type { RowStatement } from '../../database/reader/statement.ts';
import { readsProperty } from '../compilerSchema.ts';
import type { Context } from '../context.ts';
import type { Filterable } from '../filtering/filterable.ts';
import { type ListArguments, type ListFilter, readList } from '../filtering/request.ts';
import type { MarkedOrder } from './cursors.ts';
import { fetchDetailsOfParts, readWithDetails } from './details.ts';
import { fieldSiteOf } from './fieldSite.ts';
import { newest, newestId, type Order, orderBy } from './keyset.ts';
import { type PagePlan, planPage } from './pagination.ts';
import { type Needs, nodePaths, selectFor, selectsDetails } from './selection.ts';
import { currentViewer, type Model, type ViewerRef, visible } from './visible.ts';
import { visibleInList } from './visibleInList.ts';

export type Row<M extends Model> = PrismaTypes[M]['Shape'];
/** The names of a model's relations to many rows. */
export type RelationOf<M extends Model> = PrismaTypes[M]['ListRelations'];

/** How the lists come (docs/rest.md#order). */
export const orders: { readonly [M in Model]: Order } = {
  User: newestId,
  DttDevice: newest('lastVisited', true),
  DttTemplate: newest('createdDate'),
  DttTemplateSegment: newestId,
  DttSession: newest('createdAt'),
  TrainerSegment: newestId,
  LkbxDevice: newest('lastVisited', true),
  LockTemplate: newest('createdAt'),
  LockSession: newest('startDate'),
  LockSegment: newestId,
  OssmDevice: newest('lastVisited', true),
};

/** What differs from run to run of a query, beside who asks. */
const slots = { id: new Slot('id'), ids: new Slot('ids'), take: new Slot('take') };

/**
 * Reads rows of a model, with the columns that `selectFor` found to be needed: their type promises all columns.
 * @param given the values of the query's slots, but for the viewer.
 */
function readRows<M extends Model>(
  context: Context,
  model: M,
  query: PlannedQuery,
  given?: SlotValues,
): Promise<Row<M>[]> {
  const all = { ...given, viewer: context.viewer.id };
  const read = () => context.sql.findMany(model, query, all) as Promise<Row<M>[]>;
  return context.upstream ? readWithDetails(context, model, query, all, read) : read();
}

/** The query of a place in the operation, made once for each variant of it. What a mirror selects is a variant as well. */
const queryAt = (
  info: GraphQLResolveInfo,
  { upstream }: Context,
  variant: string,
  make: () => PlannedQuery,
): PlannedQuery => fieldSiteOf(info).query(upstream ? `${variant}, of a mirror` : variant, make);

async function readFirstRow<M extends Model>(
  context: Context,
  model: M,
  query: PlannedQuery,
  given?: SlotValues,
): Promise<Row<M> | null> {
  const [row] = await readRows(context, model, query, given);
  return row ?? null;
}

/** The one row that the condition names, if the viewer may see it. */
export function readVisible<M extends Model>(
  model: M,
  where: (asking: ViewerRef) => object,
  context: Context,
  info: GraphQLResolveInfo,
  given?: SlotValues,
) {
  const query = queryAt(info, context, 'one', () => ({
    select: selectFor(info, context),
    where: { AND: [where(currentViewer), visible[model](currentViewer)] },
    take: 1,
  }));
  return readFirstRow(context, model, query, given);
}

/**
 * Writes by a statement, and reads the record that a field of the payload shows, as it is then: undefined where that has
 * to be read by itself, since a mirror may not have all of it.
 */
export async function writeAndRead<M extends Model>(
  statement: RowStatement,
  { model, field, id }: { readonly model: M; readonly field: string; readonly id: number },
  context: Context,
  info: GraphQLResolveInfo,
): Promise<{ readonly written: object[]; readonly row: Row<M> | null | undefined }> {
  const { sql, viewer, upstream } = context;
  if (upstream) return { written: await sql.write(statement.text, statement.values), row: undefined };
  const query = queryAt(info, context, `with ${field}`, () => ({
    select: selectFor(info, context, { paths: [[field]] }),
    where: { AND: [{ id: slots.id }, visible[model](currentViewer)] },
    take: 1,
  }));
  const { written, found } = await sql.writeAndFind(statement, model, query, { id, viewer: viewer.id });
  // As in `readRows`.
  const [row] = found as Row<M>[];
  return { written, row: row ?? null };
}

/** The rows that global ids name, in the same order, null where the viewer may not see one: a statement per type. */
export async function readNodes(
  ids: readonly { readonly typename: Model; readonly id: number }[],
  context: Context,
  info: GraphQLResolveInfo,
): Promise<(object | null)[]> {
  const rows = new Map<string, object>();
  const readType = async (typename: Model) => {
    const named = ids.filter((id) => id.typename === typename).map(({ id }) => id);
    // By itself, a part of a record says nothing of what is pending.
    if (context.upstream && selectsDetails(info, typename))
      await fetchDetailsOfParts(context, typename, named, visible);
    const query = queryAt(info, context, typename, () => ({
      select: selectFor(info, context, { typeName: typename }),
      where: { AND: [{ id: { in: slots.ids } }, visible[typename](currentViewer)] },
    }));
    const found = await readRows(context, typename, query, { ids: named });
    for (const row of found) rows.set(`${typename}:${row.id}`, { ...row, __typename: typename });
  };
  await Promise.all([...new Set(ids.map(({ typename }) => typename))].map(readType));
  return ids.map(({ typename, id }) => rows.get(`${typename}:${id}`) ?? null);
}

/** The one record of the viewer's that a condition names, if there is one. */
export const findVisible = <M extends Model>(model: M, where: (asking: ViewerRef) => object) =>
  oncePerOperation((context, info) => readVisible(model, where, context, info));

/** Resolver of a record by its integer id. */
export const findByDatabaseId =
  <M extends Model>(model: M) =>
  (_parent: unknown, { databaseId }: { databaseId: number }, context: Context, info: GraphQLResolveInfo) =>
    readVisible(model, () => ({ id: slots.id }), context, info, { id: databaseId });

/** The newest record of a list. */
export const findNewest = <M extends Model>(model: M) =>
  oncePerOperation((context, info) => {
    const query = queryAt(info, context, 'newest', () => ({
      select: selectFor(info, context),
      where: visible[model](currentViewer),
      orderBy: orderBy(orders[model]),
      take: 1,
    }));
    return readFirstRow(context, model, query);
  });

/** A field that does not depend on the parent, so that it is read once, however many parents an operation finds. */
function oncePerOperation<Value>(read: (context: Context, info: GraphQLResolveInfo) => Promise<Value>) {
  return {
    extensions: needing({ readsDatabase: true }),
    resolve: (_parent: unknown, _args: unknown, context: Context, info: GraphQLResolveInfo) =>
      context.loaders.once(fieldSiteOf(info).key, () => read(context, info)),
  };
}

/** A part of a list that mixes several models: the first rows that meet the condition, or the last. */
export async function readPart<M extends Model>(
  model: M,
  { where, order, take, isBackward }: Part,
  context: Context,
  info: GraphQLResolveInfo,
): Promise<Row<M>[]> {
  const seen = visible[model](currentViewer);
  const make = () => ({
    select: {
      ...selectFor(info, context, { paths: nodePaths, typeName: model }),
      ...orderColumns(order),
    },
    where: where ? { AND: [seen, where] } : seen,
    orderBy: orderBy(order, isBackward),
    take: slots.take,
  });
  const isUsual = order.mark === undefined && !where;
  const query = isUsual ? queryAt(info, context, `${model} ${isBackward}`, make) : make();
  return readRows(context, model, query, { take });
}

interface Part {
  readonly where: object | undefined;
  readonly order: MarkedOrder;
  readonly take: number;
  readonly isBackward: boolean;
}

/** How many rows of a model the viewer has. */
export async function countVisible(
  model: Model,
  { condition, key }: ListFilter,
  context: Context,
): Promise<number> {
  const seen = await visibleInList(model, context);
  const where = condition ? { AND: [seen.where, condition] } : seen.where;
  const given = { ...seen.given, viewer: context.viewer.id };
  return context.loaders.once(`${model} count ${key}`, () => context.sql.count(model, where, given));
}

/** A to-one link, by the column that holds its id: null when the viewer may not see the record. */
export function toOne<M extends Model, Column extends string>(model: M, column: Column) {
  return {
    extensions: needing({ columns: [column], readsDatabase: true, filter: { link: model, by: column } }),
    resolve: async (
      parent: Readonly<Record<Column, number | null>>,
      _args: unknown,
      context: Context,
      info: GraphQLResolveInfo,
    ): Promise<Row<M> | null> => {
      const id = parent[column];
      if (id === null) return null;
      const loader = context.loaders.at(fieldSiteOf(info).key, () => async (ids) => {
        const query = queryAt(info, context, 'linked', () => ({
          select: selectFor(info, context),
          where: { AND: [{ id: { in: slots.ids } }, visible[model](currentViewer)] },
        }));
        const rows = await readRows(context, model, query, { ids });
        return new Map(rows.map((row) => [row.id, row]));
      });
      return (await loader.load(id)) ?? null;
    },
  };
}

/** The rows of a relation that are part of a record, read together with it. */
export function children<M extends Model>(relation: string, orderBy: object) {
  return {
    extensions: { ...needing({ rows: { relation, query: { orderBy } } }), ...readsProperty(relation) },
    // The rows were read with the parent, as `needs` asks; the type of a row has its columns only.
    resolve: (parent: object) => (parent as Record<string, Row<M>[]>)[relation] ?? missing(relation),
  };
}

/** Whether the record has a row of the relation that meets the condition. */
export function hasRelated(relation: string, where: (asking: ViewerRef) => object) {
  return {
    extensions: needing({
      forViewer: (viewer) => ({ [relation]: { where: where(viewer), select: { id: true }, take: 1 } }),
      filter: { holds: (viewer) => ({ [relation]: { some: where(viewer) } }) },
    }),
    // As in `children`.
    resolve: (parent: object) =>
      ((parent as Record<string, unknown[]>)[relation] ?? missing(relation)).length > 0,
  };
}

/**
 * What follows from columns of the row alone.
 * @param filter what it stands for in a condition, for lists that can be filtered by it.
 */
export function derive<Column extends string, Row extends Readonly<Record<Column, unknown>>, Value>(
  columns: readonly Column[],
  resolve: (row: Row, viewer: Viewer) => Value,
  filter?: Filterable,
) {
  return {
    extensions: needing({ columns, filter }),
    resolve: (row: Row, _args: unknown, { viewer }: Context) => resolve(row, viewer),
  };
}

/** The first of two columns, or the second; null where neither has a value. */
export const firstNonNull = <Column extends string>(first: Column, second: Column) =>
  derive(
    [first, second],
    (row: Readonly<Record<Column, number | null>>): number | null => row[first] ?? row[second],
    { columns: [first, second] },
  );

/** The first of two columns, or the second: a check of the database has exactly one of them filled. */
export const requiredFirst = <Column extends string>(first: Column, second: Column) =>
  derive(
    [first, second],
    (row: Readonly<Record<Column, number | null>>) => {
      const value = row[first] ?? row[second];
      if (value === null) throw new Error(`a row has neither ${first} nor ${second}`);
      return value;
    },
    { columns: [first, second] },
  );

/** A list of all the viewer's records of a kind. It does not depend on the parent, so it is read once per operation. */
export function viewerList<M extends Model>(model: M) {
  return {
    extensions: needing({ readsDatabase: true }),
    resolve: async (_parent: unknown, args: ListArguments, context: Context, info: GraphQLResolveInfo) => {
      const { order, filter } = readList(model, orders[model], args, context.viewer);
      const page = planPage(order, args, filter.condition);
      const { variant, query: seen, given } = await visibleInList(model, context);
      const make = () => pageOf(page, seen, context, info);
      const query = page.isUsual ? queryAt(info, context, `${page.variant} ${variant}`, make) : make();
      const rows = await context.loaders.once(fieldSiteOf(info).key, () =>
        readRows(context, model, query, { ...given, ...page.given }),
      );
      return Object.assign(page.connect(rows), {
        totalCount: () => countVisible(model, filter, context),
      });
    },
  };
}

/**
 * A list beneath a record: those of the viewer's `model` rows that `relation` ties to the parent. The pages of all
 * parents at the same place in the operation are read in one statement.
 */
export function relatedList<P extends Model, M extends Model>(
  parentModel: P,
  relation: RelationOf<P>,
  model: M,
) {
  return {
    extensions: needing({ readsDatabase: true }),
    resolve: async (
      parent: { id: number },
      args: ListArguments,
      context: Context,
      info: GraphQLResolveInfo,
    ) => {
      const seen = visible[model](currentViewer);
      const { order, filter } = readList(model, orders[model], args, context.viewer);
      const page = planPage(order, args, filter.condition);
      const ofParents = (select: object): PlannedQuery => ({
        where: { id: { in: slots.ids } },
        select: { id: true, ...select },
      });
      const fromParents =
        <Value>(query: PlannedQuery, given: SlotValues, pick: (row: Record<string, unknown>) => Value) =>
        async (ids: readonly number[]) => {
          const rows = await readRows(context, parentModel, query, { ...given, ids });
          return new Map(rows.map((row) => [row.id, pick(row)]));
        };
      const make = () => ofParents({ [relation]: pageOf(page, { where: seen }, context, info) });

      // What is read follows from the `select` beside each of the two casts.
      const rows = await context.loaders
        .at(fieldSiteOf(info).key, () =>
          fromParents(
            page.isUsual ? queryAt(info, context, page.variant, make) : make(),
            page.given,
            (row) => row[relation] as Row<M>[],
          ),
        )
        .load(parent.id);
      return Object.assign(page.connect(rows ?? []), {
        totalCount: async () => {
          const where = filter.condition ? { AND: [seen, filter.condition] } : seen;
          const counts = context.loaders.at(`${parentModel} ${relation} count ${filter.key}`, () =>
            fromParents(
              ofParents({ _count: { select: { [relation]: { where } } } }),
              {},
              (row) => (row._count as Record<string, number>)[relation],
            ),
          );
          return (await counts.load(parent.id)) ?? 0;
        },
      });
    },
  };
}

/** The query for one page of the rows that `seen` describes. */
function pageOf(
  page: PagePlan,
  seen: Pick<PlannedQuery, 'where' | 'anyOf'>,
  context: Context,
  info: GraphQLResolveInfo,
): PlannedQuery {
  const { where: bounds, ...query } = page.query;
  const where = seen.where && bounds ? { AND: [seen.where, bounds] } : (seen.where ?? bounds);
  return {
    ...seen,
    ...query,
    select: { ...selectFor(info, context, { paths: nodePaths }), ...orderColumns(page.order) },
    ...(where && { where }),
  };
}

/** The columns that a cursor holds beside the id. */
const orderColumns = ({ keys }: Order): object =>
  Object.fromEntries(keys.map(({ column }) => [column, true]));

const needing = (needs: Needs) => ({ needs });

function missing(relation: string): never {
  throw new Error(`a row was read without its ${relation}`);
}
