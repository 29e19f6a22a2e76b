/**
 * Reads rows for the resolvers: only rows that the viewer may see (`src/database/models.ts`), and only columns that the operation
 * selects: a list of fifty sessions is read four times as fast without the columns of its segments. Each field of a model's type
 * declares what it needs in its `extensions`, or by exposing a column.
 *
 * No other code of the schema reads records that are shown to clients: statistics have queries of their own, with the same conditions.
 */

import {
  type GraphQLNamedType,
  GraphQLObjectType,
  type GraphQLResolveInfo,
  getNamedType,
  isAbstractType,
  Kind,
  type SelectionSetNode,
} from 'graphql';
import { seenBy } from '../../auth/tokens.ts';
import type PrismaTypes from '../../database/generated/pothos.ts';
import {
  currentViewer,
  type ListedType,
  type RecordType,
  Slot,
  type SlotValues,
  type ViewerRef,
  visibleTo,
} from '../../database/models.ts';
import type { SelectQuery } from '../../database/reader/statement.ts';
import { type Context, placeOf } from '../context.ts';
import type { GlobalId, NodeType } from '../globalId.ts';

export type Row<M extends RecordType> = PrismaTypes[M]['Shape'];
/** The names of a model's relations to many rows. */
export type RelationOf<M extends RecordType> = PrismaTypes[M]['ListRelations'];

/** The rows that a resolver reads. */
interface WantedRows
  extends Pick<SelectQuery, 'where' | 'orderBy' | 'take' | 'skip' | 'plansEachTime'>,
    SelectionOptions {
  /** Columns to select besides those that the operation needs. */
  readonly columns?: object;
}

/** The slots of the values that differ between runs, besides the viewer's id. */
export const slots = { id: new Slot('id'), ids: new Slot('ids') };

export interface RowQuery {
  /**
   * Distinguishes the queries of a place. Each variant is planned once: only the values of its slots differ between runs.
   * Undefined for a query that is used once, such as one with a filter.
   */
  readonly variant: string | undefined;
  rows(): WantedRows;
  readonly values?: SlotValues;
}

/** The arguments of a resolver besides its parent and the field's arguments. */
export interface Call {
  readonly context: Context;
  readonly info: GraphQLResolveInfo;
}

export function readRows<M extends RecordType>(model: M, query: RowQuery, call: Call): Promise<Row<M>[]> {
  const planned = planOnce(query.variant, call, () => queryFor(model, query.rows(), call));
  return run(model, planned, query.values, call.context);
}

/** Reads the first of the rows, null if there is none. */
export async function readRow<M extends RecordType>(
  model: M,
  query: RowQuery,
  call: Call,
): Promise<Row<M> | null> {
  const first = { ...query, rows: () => ({ ...query.rows(), take: 1 }) };
  return (await readRows(model, first, call))[0] ?? null;
}

/** The condition on the rows of a model that the viewer may see, and that meet a further condition. */
const visibleWhere = (model: RecordType, condition: object | undefined) => ({
  AND: [visibleTo(currentViewer, model), ...(condition ? [condition] : [])],
});

function queryFor(
  model: RecordType,
  { columns, where, paths, typeName, ...page }: WantedRows,
  { info }: Call,
): SelectQuery {
  return {
    ...page,
    where: visibleWhere(model, where),
    select: { ...selectFor(info, { paths, typeName }), ...columns },
  };
}

/** The query for the record in a field of a payload, with a slot for its id: a mutation reads it in the same batch as it writes. */
export const queryShownBy = (field: string, model: RecordType, call: Call): SelectQuery =>
  planOnce(field, call, () => queryFor(model, { where: { id: slots.id }, paths: [[field]] }, call));

const planOnce = (variant: RowQuery['variant'], { info }: Call, plan: () => SelectQuery): SelectQuery =>
  variant === undefined ? plan() : placeOf(info).once(`rows: ${variant}`, plan);

/** Runs a query. The type of its rows promises all columns, but they have only those that it selects. */
const run = <M extends RecordType>(
  model: M,
  query: SelectQuery,
  values: SlotValues | undefined,
  { sql, viewer }: Context,
) => sql.findMany(model, query, { ...values, viewer: viewer.id }) as Promise<Row<M>[]>;

/** Reads the rows with these ids in one statement. The result has no entry for rows that the viewer may not see. */
export async function readByIds<M extends RecordType>(
  model: M,
  ids: readonly number[],
  call: Call,
  options?: SelectionOptions,
): Promise<ReadonlyMap<number, Row<M>>> {
  const rows = () => ({ ...options, where: { id: { in: slots.ids } } });
  const found = await readRows(model, { variant: model, rows, values: { ids } }, call);
  return new Map(found.map((row) => [row.id, row]));
}

/**
 * Reads the rows that global ids name, with one statement per type.
 * @returns the rows in the order of the ids, null for a row that the viewer may not see.
 */
export async function readNodes(
  ids: readonly GlobalId[],
  { context, info }: Call,
): Promise<(object | null)[]> {
  const readType = async (typeName: NodeType) => {
    const idsOfType = ids.filter(({ typename }) => typename === typeName).map(({ id }) => id);
    if (typeName === 'ApiToken') return [typeName, await readTokens(idsOfType, context)] as const;
    return [typeName, await readByIds(typeName, idsOfType, { context, info }, { typeName })] as const;
  };
  const types = [...new Set(ids.map(({ typename }) => typename))];
  const found = new Map<NodeType, ReadonlyMap<number, object>>(await Promise.all(types.map(readType)));
  return ids.map(({ typename, id }) => {
    const row = found.get(typename)?.get(id);
    return row ? { ...row, __typename: typename } : null;
  });
}

async function readTokens(ids: readonly number[], { prisma, viewer }: Context) {
  const found = await prisma.apiToken.findMany({
    where: { AND: [seenBy(viewer), { id: { in: [...ids] } }] },
  });
  return new Map(found.map((token) => [token.id, token]));
}

export interface ListFilter {
  /** Undefined if all rows meet the filter. */
  readonly condition: object | undefined;
  /** The filter as text. Equal filters have the same: graphql-js makes inputs with their fields in the order of the schema. */
  readonly key: string;
}

/** Counts the viewer's rows of a model that meet a filter. */
export async function countVisible(
  model: ListedType,
  { condition, key }: ListFilter,
  context: Context,
): Promise<number> {
  const where = visibleWhere(model, condition);
  return context.loaders.once(`${model} count ${key}`, () =>
    context.sql.count(model, where, { viewer: context.viewer.id }, condition !== undefined),
  );
}

/** A relation from records to the rows that are listed beneath them. */
export interface ListRelation {
  readonly parentModel: RecordType;
  readonly relation: string;
  readonly model: ListedType;
}

/**
 * Reads the pages of all parents with these ids in one statement.
 * @returns the rows of each page, by the id of the parent.
 */
export async function readPagesBelow(
  { parentModel, relation, model }: ListRelation,
  page: RowQuery,
  ids: readonly number[],
  call: Call,
): Promise<ReadonlyMap<number, Row<ListedType>[]>> {
  const query = planOnce(page.variant, call, () => {
    const below = queryFor(model, { ...page.rows(), paths: nodePaths }, call);
    return belowParents({ [relation]: below }, below.plansEachTime);
  });
  const parents = await run(parentModel, query, { ...page.values, ids }, call.context);
  // Each parent has the relation that the query selects; the type of a row has its columns only.
  const rowsOf = (parent: object) => (parent as Record<string, unknown>)[relation] as Row<ListedType>[];
  return new Map(parents.map((parent) => [parent.id, rowsOf(parent)]));
}

/**
 * Counts the rows beneath all parents with these ids that meet a filter, in one statement.
 * @returns the number of rows, by the id of the parent.
 */
export async function countBelow(
  { parentModel, relation, model }: ListRelation,
  { condition }: ListFilter,
  ids: readonly number[],
  context: Context,
): Promise<ReadonlyMap<number, number>> {
  const where = visibleWhere(model, condition);
  const query = belowParents({ _count: { select: { [relation]: { where } } } }, condition !== undefined);
  const parents = await run(parentModel, query, { ids }, context);
  // As above: the query selects `_count`.
  const counted = parents as object[] as { id: number; _count: Record<string, number> }[];
  return new Map(counted.map(({ id, _count }) => [id, _count[relation] ?? 0]));
}

/** The query for rows beneath parents. The viewer has been shown the parents already, so they need no condition. */
const belowParents = (select: object, plansEachTime = false): SelectQuery => ({
  plansEachTime,
  where: { id: { in: slots.ids } },
  select: { id: true, ...select },
});

/** The paths to the rows of a connection in the selection of its field. */
export const nodePaths = [['nodes'], ['edges', 'node']];

/** The place of the rows in the value of a field. */
interface SelectionOptions {
  /** The paths to them in the field's selection, for a field that wraps them. */
  readonly paths?: readonly string[][] | undefined;
  /** Their type, for a field that may resolve to several. */
  readonly typeName?: string | undefined;
}

/**
 * The `select` of a query for the rows that a field resolves to. The name of the plan does not contain the paths: a resolver always
 * passes the same paths for a type.
 */
export const selectFor = (
  info: GraphQLResolveInfo,
  { paths = [[]], typeName = '' }: SelectionOptions = {},
): Readonly<Record<string, unknown>> =>
  placeOf(info).once(`select: ${typeName}`, () => {
    const response = getNamedType(info.returnType);
    const sets = info.fieldNodes.flatMap(({ selectionSet }) => selectionSet ?? []);
    const ends = paths.map((path) => descend(path, response, sets, info));
    const type = typeName === '' ? ends[0]?.type : info.schema.getType(typeName);
    const endSets = ends.flatMap((end) => end.sets);
    return selectOf(objectType(type, info.fieldName), endSets, info);
  });

/** Follows a path of fields, such as `edges` and `node`. */
function descend(
  path: readonly string[],
  type: GraphQLNamedType | undefined,
  sets: readonly SelectionSetNode[],
  info: GraphQLResolveInfo,
): { type: GraphQLNamedType | undefined; sets: readonly SelectionSetNode[] } {
  const [step, ...rest] = path;
  if (step === undefined) return { type, sets };
  const parent = objectType(type, info.fieldName);
  const below = fieldsIn(parent, sets, info).get(step) ?? [];
  return descend(rest, getNamedType(parent.getFields()[step]?.type), below, info);
}

function selectOf(
  type: GraphQLObjectType,
  sets: readonly SelectionSetNode[],
  info: GraphQLResolveInfo,
): Readonly<Record<string, unknown>> {
  const select: Record<string, unknown> = { id: true };
  for (const [name, below] of fieldsIn(type, sets, info)) {
    const { columns = [], rows, forViewer } = needsOf(type, name);
    for (const column of columns) select[column] = true;
    Object.assign(select, forViewer?.(currentViewer));
    if (!rows) continue;
    const child = objectType(getNamedType(type.getFields()[name]?.type), name);
    select[rows.relation] = { ...rows.query, select: selectOf(child, below, info) };
  }
  return select;
}

function objectType(type: GraphQLNamedType | undefined, fieldName: string): GraphQLObjectType {
  if (type instanceof GraphQLObjectType) return type;
  throw new Error(`${fieldName} does not lead to rows of one type`);
}

/**
 * The selected fields of a type, each with the selection sets beneath it, including those in fragments. A fragment is read
 * once, however often it is spread. Usually the document has no conditions any more (`operation.ts`). If it has, all fields are read.
 */
function fieldsIn(
  type: GraphQLObjectType,
  sets: readonly SelectionSetNode[],
  info: GraphQLResolveInfo,
  found = new Map<string, SelectionSetNode[]>(),
  spread = new Set<string>(),
): Map<string, SelectionSetNode[]> {
  for (const selection of sets.flatMap((set) => set.selections)) {
    if (selection.kind === Kind.FIELD) {
      const name = selection.name.value;
      if (name.startsWith('__')) continue;
      const below = found.get(name) ?? [];
      if (selection.selectionSet) below.push(selection.selectionSet);
      found.set(name, below);
      continue;
    }
    if (selection.kind === Kind.FRAGMENT_SPREAD) {
      if (spread.has(selection.name.value)) continue;
      spread.add(selection.name.value);
    }
    const fragment =
      selection.kind === Kind.INLINE_FRAGMENT ? selection : info.fragments[selection.name.value];
    if (fragment && applies(fragment.typeCondition?.name.value, type, info)) {
      fieldsIn(type, [fragment.selectionSet], info, found, spread);
    }
  }
  return found;
}

function applies(
  condition: string | undefined,
  type: GraphQLObjectType,
  { schema }: GraphQLResolveInfo,
): boolean {
  if (condition === undefined || condition === type.name) return true;
  const named = schema.getType(condition);
  return isAbstractType(named) && schema.isSubType(named, type);
}

/** What a field of a filter means in the database. */
export type FilterTarget =
  /** A column, or the first of several columns that has a value. */
  | { readonly columns: readonly [string, ...string[]] }
  /** Whether a condition holds. The condition must never be null in SQL. */
  | { readonly condition: (viewer: ViewerRef) => object }
  /** A linked record, by the column that holds its id. */
  | { readonly link: ListedType; readonly by: string };

/** What a field needs of the row that it belongs to. */
interface FieldRequirements {
  readonly columns?: readonly string[];
  /** Rows of a relation, with the fields selected beneath this one; the value is the rest of the Prisma query. */
  readonly rows?: { readonly relation: string; readonly query: object };
  /** Rows of a relation that depend on the viewer, and not on what is selected beneath the field. */
  readonly forViewer?: (viewer: ViewerRef) => Record<string, object>;
  /** Its meaning in the filter of a list. */
  readonly filter?: FilterTarget | undefined;
}

/** The extension of a field whose resolver only returns a property of its parent. */
export const readsProperty = (name: string) => ({ property: name });

export const needing = (needs: FieldRequirements) => ({ needs });

/** The extensions of a field that shows a column of its row. */
export const showing = (column: string) => ({
  ...needing({ columns: [column], filter: { columns: [column] } }),
  ...readsProperty(column),
});

/** The needs of a field with these extensions; undefined if it does not declare them. */
export const needsIn = ({ needs }: Readonly<Record<string, unknown>>) =>
  // Only `needing` writes this extension.
  needs as FieldRequirements | undefined;

/**
 * The needs of a field.
 * @throws for a field that does not declare them: values that were not read would look like nulls.
 */
export function needsOf(type: GraphQLObjectType, fieldName: string): FieldRequirements {
  const { extensions = {} } = type.getFields()[fieldName] ?? {};
  const needs = needsIn(extensions);
  if (needs) return needs;
  // Pothos reads what a field of its plugin for Prisma needs by itself.
  if (fieldName === 'id' || extensions.pothosPrismaSelect) return {};
  throw new Error(`${type.name}.${fieldName} does not say what it needs of its row`);
}
