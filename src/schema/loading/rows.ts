/**
 * Reads rows for the resolvers. Every query here reads only rows that `visible` shows to the viewer, and only columns that the
 * operation needs. No other code of the schema reads records that are shown to clients: statistics, the details of a
 * mirror and `visibleInList` have queries of their own, with the same conditions.
 */

import type { GraphQLResolveInfo } from 'graphql';
import type PrismaTypes from '../../database/generated/pothos.ts';
import { type PlannedQuery, type Planning, Slot, type SlotValues } from '../../database/reader/query.ts';
import type { RowStatement } from '../../database/reader/statement.ts';
import type { Context } from '../context.ts';
import type { ListFilter } from '../filtering/request.ts';
import type { CursorOrder } from './cursors.ts';
import { fetchDetailsOfParts, readWithDetails } from './details.ts';
import { fieldSiteOf } from './fieldSite.ts';
import { type Order, orderBy } from './keyset.ts';
import type { PagePlan } from './pagination.ts';
import { nodePaths, selectFor, selectsDetails } from './selection.ts';
import { currentViewer, type Model, type ViewerRef, visible } from './visible.ts';
import { visibleInList } from './visibleInList.ts';

export type Row<M extends Model> = PrismaTypes[M]['Shape'];
/** The names of a model's relations to many rows. */
export type RelationOf<M extends Model> = PrismaTypes[M]['ListRelations'];

/** The values that differ between runs of a planned query, besides the viewer's id. */
const slots = { id: new Slot('id'), ids: new Slot('ids'), take: new Slot('take') };

/** Reads the row of the viewer's that meets a condition, or null if there is none. */
export const readVisible = <M extends Model>(
  model: M,
  condition: (viewer: ViewerRef) => object,
  context: Context,
  info: GraphQLResolveInfo,
): Promise<Row<M> | null> => readOne(model, condition(currentViewer), {}, context, info);

/** Reads the row with an id, or null if the viewer has none with this id. */
export const readById = <M extends Model>(
  model: M,
  id: number,
  context: Context,
  info: GraphQLResolveInfo,
): Promise<Row<M> | null> => readOne(model, { id: slots.id }, { id }, context, info);

function readOne<M extends Model>(
  model: M,
  condition: object,
  values: SlotValues,
  context: Context,
  info: GraphQLResolveInfo,
): Promise<Row<M> | null> {
  const query = planOnce(info, context, 'one', () => ({
    select: selectFor(info, context),
    where: { AND: [condition, visible[model](currentViewer)] },
    take: 1,
  }));
  return readFirstRow(context, model, query, values);
}

/** Reads the first row of a list in this order. */
export function readFirst<M extends Model>(
  model: M,
  order: Order,
  context: Context,
  info: GraphQLResolveInfo,
): Promise<Row<M> | null> {
  const query = planOnce(info, context, 'newest', () => ({
    select: selectFor(info, context),
    where: visible[model](currentViewer),
    orderBy: orderBy(order),
    take: 1,
  }));
  return readFirstRow(context, model, query);
}

/** Reads the rows with these ids in one statement. The result has no entry for rows that the viewer may not see. */
export async function readByIds<M extends Model>(
  model: M,
  ids: readonly number[],
  context: Context,
  info: GraphQLResolveInfo,
): Promise<ReadonlyMap<number, Row<M>>> {
  const query = planOnce(info, context, 'linked', () => ({
    select: selectFor(info, context),
    where: { AND: [{ id: { in: slots.ids } }, visible[model](currentViewer)] },
  }));
  const rows = await readRows(context, model, query, { ids });
  return new Map(rows.map((row) => [row.id, row]));
}

/**
 * Reads the rows that global ids name, with one statement per type.
 * @returns the rows in the order of the ids, null for a row that the viewer may not see.
 */
export async function readNodes(
  ids: readonly { readonly typename: Model; readonly id: number }[],
  context: Context,
  info: GraphQLResolveInfo,
): Promise<(object | null)[]> {
  const rows = new Map<string, object>();
  const readType = async (typename: Model) => {
    const idsOfType = ids.filter((id) => id.typename === typename).map(({ id }) => id);
    // The row of a segment does not say whether its details are pending: only its parent's row does.
    if (context.upstream && selectsDetails(info, typename))
      await fetchDetailsOfParts(context, typename, idsOfType, visible);
    const query = planOnce(info, context, typename, () => ({
      select: selectFor(info, context, { typeName: typename }),
      where: { AND: [{ id: { in: slots.ids } }, visible[typename](currentViewer)] },
    }));
    const found = await readRows(context, typename, query, { ids: idsOfType });
    for (const row of found) rows.set(`${typename}:${row.id}`, { ...row, __typename: typename });
  };
  await Promise.all([...new Set(ids.map(({ typename }) => typename))].map(readType));
  return ids.map(({ typename, id }) => rows.get(`${typename}:${id}`) ?? null);
}

/**
 * Executes a statement that writes, and in the same statement reads the record that a field of the payload shows.
 * @returns the rows that the statement returned, and the record as it is after the write: null if the viewer may not see it,
 * undefined if the caller has to read it, since a mirror may have to fetch its details first.
 */
export async function writeAndRead<M extends Model>(
  statement: RowStatement,
  { model, field, id }: { readonly model: M; readonly field: string; readonly id: number },
  context: Context,
  info: GraphQLResolveInfo,
): Promise<{ readonly written: object[]; readonly row: Row<M> | null | undefined }> {
  const { sql, viewer, upstream } = context;
  if (upstream) return { written: await sql.write(statement.text, statement.values), row: undefined };
  const query = planOnce(info, context, `with ${field}`, () => ({
    select: selectFor(info, context, { paths: [[field]] }),
    where: { AND: [{ id: slots.id }, visible[model](currentViewer)] },
    take: 1,
  }));
  const { written, found } = await sql.writeAndFind(statement, model, query, { id, viewer: viewer.id });
  // The rows have the selected columns, as in `readRows`.
  const [row] = found as Row<M>[];
  return { written, row: row ?? null };
}

/** Reads a page of all the viewer's rows of a model. */
export async function readPage<M extends Model>(
  model: M,
  page: PagePlan,
  context: Context,
  info: GraphQLResolveInfo,
): Promise<Row<M>[]> {
  const { variant, query: seen, given } = await visibleInList(model, context);
  const plan = () => pageQuery(page, seen, context, info);
  const query = page.isDefault ? planOnce(info, context, `${page.variant} ${variant}`, plan) : plan();
  return readRows(context, model, query, { ...given, ...page.slotValues });
}

/** Counts the viewer's rows of a model that meet a filter. */
export async function countVisible(
  model: Model,
  { condition, key }: ListFilter,
  context: Context,
): Promise<number> {
  const list = await visibleInList(model, context);
  const where = condition ? { AND: [list.where, condition] } : list.where;
  const values = { ...list.given, viewer: context.viewer.id };
  return context.loaders.once(`${model} count ${key}`, () =>
    context.sql.count(model, where, values, { plansEachTime: condition !== undefined }),
  );
}

interface Part {
  readonly where: object | undefined;
  readonly order: CursorOrder;
  readonly take: number;
  readonly isBackward: boolean;
}

/** Reads the first rows of a model that meet a condition, or the last, for a list that merges several models. */
export function readPart<M extends Model>(
  model: M,
  { where, order, take, isBackward }: Part,
  context: Context,
  info: GraphQLResolveInfo,
): Promise<Row<M>[]> {
  const seen = visible[model](currentViewer);
  const plan = () => ({
    select: {
      ...selectFor(info, context, { paths: nodePaths, typeName: model }),
      ...orderColumns(order),
    },
    where: where ? { AND: [seen, where] } : seen,
    orderBy: orderBy(order, isBackward),
    take: slots.take,
    plansEachTime: order.fingerprint !== undefined,
  });
  const isDefault = order.fingerprint === undefined && !where;
  const query = isDefault ? planOnce(info, context, `${model} ${isBackward}`, plan) : plan();
  return readRows(context, model, query, { take });
}

/** A relation from records to the rows that are listed beneath them. */
export interface ListRelation<P extends Model, M extends Model> {
  readonly parentModel: P;
  readonly relation: RelationOf<P>;
  readonly model: M;
}

/**
 * Reads the pages of all parents with these ids in one statement.
 * @returns the rows of each page, by the id of the parent.
 */
export async function readPagesBelow<P extends Model, M extends Model>(
  { parentModel, relation, model }: ListRelation<P, M>,
  page: PagePlan,
  ids: readonly number[],
  context: Context,
  info: GraphQLResolveInfo,
): Promise<ReadonlyMap<number, Row<M>[]>> {
  const plan = () =>
    parentsQuery(
      { [relation]: pageQuery(page, { where: visible[model](currentViewer) }, context, info) },
      page.planning,
    );
  const query = page.isDefault ? planOnce(info, context, page.variant, plan) : plan();
  const parents = await readRows(context, parentModel, query, { ...page.slotValues, ids });
  // Each parent has the relation that the query selects; the type of a row has its columns only.
  return new Map(
    parents.map((parent) => [parent.id, (parent as Record<string, unknown>)[relation] as Row<M>[]]),
  );
}

/**
 * Counts the rows beneath all parents with these ids that meet a filter, in one statement.
 * @returns the number of rows, by the id of the parent.
 */
export async function countBelow<P extends Model, M extends Model>(
  { parentModel, relation, model }: ListRelation<P, M>,
  { condition }: ListFilter,
  ids: readonly number[],
  context: Context,
): Promise<ReadonlyMap<number, number>> {
  const seen = visible[model](currentViewer);
  const where = condition ? { AND: [seen, condition] } : seen;
  const planning = { plansEachTime: condition !== undefined };
  const query = parentsQuery({ _count: { select: { [relation]: { where } } } }, planning);
  const parents = await readRows(context, parentModel, query, { ids });
  // As above: the query selects `_count`.
  return new Map(
    parents.map((parent) => [
      parent.id,
      (parent as unknown as { readonly _count: Readonly<Record<string, number>> })._count[relation] ?? 0,
    ]),
  );
}

/** The query for what is listed beneath parents, which the viewer has been shown already. */
const parentsQuery = (select: object, planning: Planning): PlannedQuery => ({
  ...planning,
  where: { id: { in: slots.ids } },
  select: { id: true, ...select },
});

/** The query for one page of the rows that `seen` describes. */
function pageQuery(
  page: PagePlan,
  seen: Pick<PlannedQuery, 'where' | 'anyOf'>,
  context: Context,
  info: GraphQLResolveInfo,
): PlannedQuery {
  const { where: bounds, ...query } = page.query();
  const where = seen.where && bounds ? { AND: [seen.where, bounds] } : (seen.where ?? bounds);
  return {
    ...seen,
    ...query,
    ...page.planning,
    select: { ...selectFor(info, context, { paths: nodePaths }), ...orderColumns(page.order) },
    ...(where && { where }),
  };
}

/** The columns that a cursor holds besides the id. */
const orderColumns = ({ keys }: Order): object =>
  Object.fromEntries(keys.map(({ column }) => [column, true]));

/**
 * The query of a field at its site in the operation. Each variant is planned once and then reused: the values that differ
 * between runs are slots. A mirror also selects whether details are pending, so it has variants of its own.
 */
const planOnce = (
  info: GraphQLResolveInfo,
  { upstream }: Context,
  variant: string,
  plan: () => PlannedQuery,
): PlannedQuery => fieldSiteOf(info).query(upstream ? `${variant}, of a mirror` : variant, plan);

/**
 * Reads rows of a model. Their type promises all columns, but they have only those that the query selects.
 * @param values of the query's slots, except the viewer's id.
 */
function readRows<M extends Model>(
  context: Context,
  model: M,
  query: PlannedQuery,
  values?: SlotValues,
): Promise<Row<M>[]> {
  const allValues = { ...values, viewer: context.viewer.id };
  const read = () => context.sql.findMany(model, query, allValues) as Promise<Row<M>[]>;
  return context.upstream ? readWithDetails(context, model, query, allValues, read) : read();
}

async function readFirstRow<M extends Model>(
  context: Context,
  model: M,
  query: PlannedQuery,
  values?: SlotValues,
): Promise<Row<M> | null> {
  const [row] = await readRows(context, model, query, values);
  return row ?? null;
}
