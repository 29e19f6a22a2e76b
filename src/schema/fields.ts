/**
 * The fields of types of records: columns, queries for a record and for lists, the meaning of null, and the resolvers of records, of
 * lists and of values that are derived from columns.
 */

import type { EnumRef } from '@pothos/core';
import { getRefFromModel } from '@pothos/plugin-prisma';
import type { GraphQLResolveInfo } from 'graphql';
import type { Viewer } from '../auth/viewer.ts';
import { fieldOf } from '../database/dataModel.ts';
import {
  currentViewer,
  isListedType,
  type ListedType,
  type RecordType,
  type ViewerRef,
} from '../database/models.ts';
import { builder } from './builder.ts';
import { type Context, placeOf } from './context.ts';
import {
  type FilterableType,
  filterRef,
  type ListArguments,
  limits,
  once,
  orderRef,
  readListArguments,
} from './filter.ts';
import { checkDatabaseId } from './globalId.ts';
import { type Connection, defaultOrder, orderBy, pageSize, planPage } from './loading/pagination.ts';
import {
  countBelow,
  countVisible,
  type FilterTarget,
  type ListRelation,
  needing,
  nodePaths,
  type RelationOf,
  type Row,
  type RowQuery,
  readByIds,
  readPagesBelow,
  readRow,
  readRows,
  readsProperty,
  showing,
  slots,
} from './loading/rows.ts';

/** A type of records, or the interface of devices. Pothos has no type for what they have in common. */
type AnyRecord = ReturnType<typeof builder.objectRef<{ readonly id: number }>>;

/** The type of a model's records. Like Pothos' plugin for Prisma, fields name the model: its type may be added later. */
const typeOf = <M extends RecordType>(model: M) =>
  // The plugin does not know that no type here changes the shape of its rows.
  getRefFromModel(model, builder) as unknown as ReturnType<typeof builder.objectRef<Row<M>>>;

/** The arguments of a field that finds a record by its integer id. */
const recordArguments = builder.args((t) => ({
  databaseId: t.int({ required: true, description: 'The integer id of the REST interface. At least 1.' }),
}));

/** The arguments of lists, besides those of every Relay connection. */
const listArguments = (listed: FilterableType) =>
  builder.args((t) => ({
    offset: t.int({
      defaultValue: 0,
      description: 'How many records to skip. At least 0; not together with `last`.',
    }),
    where: t.field({ type: filterRef(listed), description: 'Only records that meet these conditions.' }),
    orderBy: t.field({
      type: [orderRef(listed)],
      description: `The order, instead of the default one: at most ${limits.keys} fields, each once. A cursor is only valid with the same order and conditions.`,
    }),
  }));

/**
 * The extension of a field that is null only if it has failed. It is nullable so that its error erases no sibling field. In a response
 * without errors, and so in every successful REST response, it is never null.
 */
export const nullOnlyWithError = { nullOnlyWithError: true } as const;

/**
 * Options of a field that may be null only for an account that lives elsewhere, where null means that the value is not known. In any
 * other database a trigger rejects null (`has_values` in the migration), so a REST response, which is never made from such rows, has a
 * value there.
 * @param description without a word about null: that of the schema has it for all of these fields.
 */
export const nullIfUnknown = (description: string) =>
  ({ nullable: true, description, extensions: { nullIfUnknown: true } }) as const;

/** A field that shows a column. It is nullable if the column is. */
interface ColumnField {
  readonly description: string;
  /** By default, the column of the same name. */
  readonly column?: string;
  /** By default, the scalar of the column. */
  readonly type?: EnumRef<(typeof builder)['$inferSchemaTypes'], unknown>;
  readonly extensions?: object;
}

/** The fields that show a column, by their names: a description, or more. */
type ColumnFields = Readonly<Record<string, string | ColumnField>>;

export const databaseId = { column: 'id', description: 'The integer id of the REST interface.' };

interface RecordOptions<M extends RecordType> {
  readonly description: string;
  /** An interface that has the ids already. */
  readonly interfaces?: readonly object[];
  readonly columns: ColumnFields;
  readonly fields?: (t: FieldsOf<M>) => object;
}

type FieldsOf<M extends RecordType> = PothosSchemaTypes.ObjectFieldBuilder<
  (typeof builder)['$inferSchemaTypes'],
  Row<M>
>;

/** Makes fields that show columns of a model. */
export const columnFields = <T extends Pick<FieldsOf<RecordType>, 'expose'>>(
  t: T,
  model: RecordType,
  columns: ColumnFields,
) =>
  Object.fromEntries(
    Object.entries(columns).map(([name, given]) => {
      const { column = name, ...field } = typeof given === 'string' ? { description: given } : given;
      const { type, isRequired } = fieldOf(model, column);
      const extensions = { ...showing(column), ...field.extensions };
      return [
        name,
        t.expose(column as never, { type, ...field, extensions, nullable: !isRequired } as never),
      ] as const;
    }),
  );

/** Adds the type of a model's records. */
export function record<M extends RecordType>(
  model: M,
  { columns, fields, ...options }: RecordOptions<M>,
): ReturnType<typeof typeOf<M>> {
  const exposed = options.interfaces ? columns : { databaseId, ...columns };
  const settings = {
    ...options,
    id: { field: 'id' },
    fields: (t: FieldsOf<M>) => ({ ...columnFields(t, model, exposed), ...fields?.(t) }),
  };
  // Pothos cannot check the columns of a model that is a parameter. `fieldOf` does so when the schema is built.
  builder.prismaNode(model, settings as never);
  return typeOf(model);
}

/**
 * Adds the type of a model's records, the queries for them, such as `dttDevice` and `dttDevices`, and the list of a user's.
 * @param one the description of the query for one record, and `all` that of the list.
 */
export function listedRecord<M extends ListedType>(
  model: M,
  { one, all, ...options }: RecordOptions<M> & { readonly one: string; readonly all: string },
): ReturnType<typeof typeOf<M>> {
  const type = record(model, options);
  addQuery(model, one);
  addViewerList(`${lowerFirst(model)}s`, model, type, all, viewerList(model));
  return type;
}

/** Adds the query for one record of a model. */
export const addQuery = (model: RecordType, description: string): void =>
  builder.queryField(lowerFirst(model), (t) =>
    t.field({
      type: typeOf(model) as AnyRecord,
      nullable: true,
      args: recordArguments,
      description,
      resolve: (_parent, { databaseId }, context, info) => {
        const values = { id: checkDatabaseId(databaseId, 'databaseId') };
        return readRow(model, { ...byId, values }, { context, info });
      },
    }),
  );

/** The name of a query for a type, or of the operation or tool for a query. */
export const lowerFirst = (name: string) => `${name.charAt(0).toLowerCase()}${name.slice(1)}`;

/** Adds a list of the viewer's records to `Query`, and to `User`: the only user that can be read is the viewer. */
export function addViewerList(...[name, ...given]: [string, ...Parameters<typeof listField<unknown>>]): void {
  const list = listField(...given);
  builder.queryField(name, (t) => t.connection(...list));
  builder.objectField(typeOf('User'), name, (t) => t.connection(...list));
}

/** Adds a field for a record of the viewer's to `Query` and `User`. */
export function addViewerField(
  name: string,
  options: ReturnType<typeof findNewest> & { readonly description: string },
): void {
  builder.queryField(name, (t) => t.field(options));
  builder.objectField(typeOf('User'), name, (t) => t.field(options));
}

/** A connection of the records that a relation joins to the parent, as the arguments of `t.connection`. */
export const listBelow = <P extends RecordType>(
  parentModel: P,
  relation: RelationOf<P>,
  model: ListedType,
  description: string,
) => listField(model, typeOf(model), description, relatedList({ parentModel, relation, model }));

/** A connection with its resolver. */
function listField<Parent>(
  listed: FilterableType,
  record: { readonly name: string },
  description: string,
  { extensions, resolve }: ListResolver<Parent>,
) {
  const type = record as AnyRecord;
  const options = {
    type,
    nullable: true,
    args: listArguments(listed),
    description,
    extensions: { ...extensions, ...nullOnlyWithError, first: pageSize.default },
    resolve,
  } as const;
  return [options, connectionOf(type)] as const;
}

/** The connection of a type, which all its lists share. */
const connectionOf = once((type: AnyRecord) =>
  builder.connectionObject({
    type,
    name: `${type.name}Connection`,
    fields: (t) => ({
      nodes: t.field({
        type: [type],
        description: 'The records of this page.',
        extensions: readsProperty('nodes'),
        resolve: (page) => asPage(page).nodes,
      }),
      totalCount: t.int({
        description: 'How many records the whole list has.',
        resolve: (page) => asPage(page).totalCount(),
      }),
    }),
  }),
);
/** Only the lists of this file have these connections. Those of Pothos' plugin for Prisma lack these properties. */
const asPage = (connection: object) =>
  connection as Pick<Connection<{ readonly id: number }>, 'nodes' | 'totalCount'>;

const byId = { variant: 'one', rows: () => ({ where: { id: slots.id } }) };

/** The viewer's record that meets a condition, null if there is none. At most one record may meet it. */
export const findVisible = (model: ListedType, condition: (viewer: ViewerRef) => object) =>
  findFirst(model, () => ({ where: condition(currentViewer) }));

/** The first record of a list in its default order. */
export const findNewest = (model: ListedType) =>
  findFirst(model, () => ({ orderBy: orderBy(defaultOrder(model)) }));

/** The first of some rows. It does not depend on the parent, so an operation reads it once for all parents. */
const findFirst = (model: ListedType, rows: RowQuery['rows']) =>
  ({
    type: typeOf(model),
    nullable: true,
    extensions: needing({}),
    resolve: (_parent: unknown, _args: unknown, context: Context, info: GraphQLResolveInfo) =>
      context.loaders.once(placeOf(info), () =>
        readRow(model, { variant: 'first', rows }, { context, info }),
      ),
  }) as const;

/** A to-one link, by the column that holds the id of the record: null if the viewer may not see the record. */
export function toOne<M extends RecordType, Column extends string>(model: M, column: Column) {
  return {
    type: typeOf(model),
    nullable: true,
    extensions: needing({
      columns: [column],
      // The viewer sees no other user than themselves, so a filter by a user would be pointless.
      filter: isListedType(model) ? { link: model, by: column } : undefined,
    }),
    resolve: async (
      parent: Readonly<Record<Column, number | null>>,
      _args: unknown,
      context: Context,
      info: GraphQLResolveInfo,
    ): Promise<Row<M> | null> => {
      const id = parent[column];
      if (id === null) return null;
      const loader = context.loaders.at(
        placeOf(info),
        () => (ids) => readByIds(model, ids, { context, info }),
      );
      return (await loader.load(id)) ?? null;
    },
  } as const;
}

/** The rows of a relation that are part of a record. They are read together with the record. */
export function children<M extends RecordType>(model: M, relation: string, orderBy: object) {
  return {
    type: [typeOf(model)] as [ReturnType<typeof typeOf<M>>],
    extensions: { ...needing({ rows: { relation, query: { orderBy } } }), ...readsProperty(relation) },
    // Because of `needs`, the rows were read with the parent. The type of a row has its columns only.
    resolve: (parent: object) => (parent as Record<string, Row<M>[]>)[relation] ?? missing(relation),
  };
}

/** Whether the record has a row of the relation that meets the condition. */
export function hasRelated(relation: string, condition: (viewer: ViewerRef) => object) {
  return {
    extensions: needing({
      forViewer: (viewer) => ({ [relation]: { where: condition(viewer), select: { id: true }, take: 1 } }),
      filter: { condition: (viewer) => ({ [relation]: { some: condition(viewer) } }) },
    }),
    // As in `children`.
    resolve: (parent: object) =>
      ((parent as Record<string, unknown[]>)[relation] ?? missing(relation)).length > 0,
  };
}

/**
 * A value that follows from columns of the row alone.
 * @param filter what the field means in the filter of a list, if lists can be filtered by it.
 */
export function derive<Column extends string, Row extends Readonly<Record<Column, unknown>>, Value>(
  columns: readonly Column[],
  resolve: (row: Row, viewer: Viewer) => Value,
  filter?: FilterTarget,
) {
  return {
    extensions: needing({ columns, filter }),
    resolve: (row: Row, _args: unknown, { viewer }: Context) => resolve(row, viewer),
  };
}

/** The value of the first column, or of the second if the first is null; null if both are. */
export const firstNonNull = <Column extends string>(first: Column, second: Column) => ({
  nullable: true as const,
  ...derive([first, second], (row: Readonly<Record<Column, number | null>>) => row[first] ?? row[second], {
    columns: [first, second],
  }),
});

/** The same for two columns of which exactly one has a value: a check constraint of the database ensures that. */
export const requiredFirst = <Column extends string>(first: Column, second: Column) =>
  derive(
    [first, second],
    (row: Readonly<Record<Column, number | null>>) => row[first] ?? row[second] ?? missing(first),
    { columns: [first, second] },
  );

/** A field for a list. */
interface ListResolver<Parent> {
  readonly extensions: object;
  resolve(
    parent: Parent,
    args: ListArguments,
    context: Context,
    info: GraphQLResolveInfo,
  ): Promise<Pick<Connection<{ readonly id: number }>, keyof Connection<never>>>;
}

/** The order and the filter of a list. Most have the default order and no filter, which are made once. */
function argumentsOf(model: ListedType) {
  const usual = { order: defaultOrder(model), filter: { condition: undefined, key: '' } };
  return (args: ListArguments, viewer: ViewerRef) =>
    args.where || args.orderBy ? readListArguments(model, args, viewer) : usual;
}

/** A list of all the viewer's records of a model. It does not depend on the parent, so an operation reads it once. */
function viewerList<M extends ListedType>(model: M) {
  const read = argumentsOf(model);
  return {
    extensions: needing({}),
    resolve: async (_parent: unknown, args: ListArguments, context: Context, info: GraphQLResolveInfo) => {
      const { order, filter } = read(args, context.viewer);
      const page = planPage(order, args, filter.condition);
      const query = { ...page, rows: () => ({ ...page.rows(), paths: nodePaths }) };
      const rows = await context.loaders.once(placeOf(info), () => readRows(model, query, { context, info }));
      return page.connect(rows, () => countVisible(model, filter, context));
    },
  };
}

/**
 * A list beneath a record: the viewer's `model` rows that `relation` ties to the parent. The pages of all parents at the
 * same place in the operation are read in one statement.
 */
function relatedList(listed: ListRelation) {
  const { parentModel, relation, model } = listed;
  const read = argumentsOf(model);
  return {
    extensions: needing({}),
    resolve: async (
      parent: { id: number },
      args: ListArguments,
      context: Context,
      info: GraphQLResolveInfo,
    ) => {
      const { loaders, viewer } = context;
      const { order, filter } = read(args, viewer);
      const page = planPage(order, args, filter.condition);
      const call = { context, info };
      const pages = loaders.at(placeOf(info), () => (ids) => readPagesBelow(listed, page, ids, call));
      const rows = await pages.load(parent.id);
      return page.connect(rows ?? [], async () => {
        const counts = loaders.at(
          `${parentModel} ${relation} count ${filter.key}`,
          () => (ids) => countBelow(listed, filter, ids, context),
        );
        return (await counts.load(parent.id)) ?? 0;
      });
    },
  };
}

function missing(relation: string): never {
  throw new Error(`a row was read without its ${relation}`);
}
