/** The resolvers of fields for records, for lists of records, and for values that are derived from columns. */

import type { GraphQLResolveInfo } from 'graphql';
import type { Viewer } from '../../auth/viewer.ts';
import { currentViewer, type ListedType, type RecordType, type ViewerRef } from '../../database/models.ts';
import { readsProperty } from '../compilerSchema.ts';
import { type Context, placeOf } from '../context.ts';
import { type FilterTarget, type ListArguments, readList } from '../filtering/filter.ts';
import { checkDatabaseId } from '../globalId.ts';
import { type Connection, defaultOrder, orderBy, planPage } from './pagination.ts';
import {
  countBelow,
  countVisible,
  type FieldRequirements,
  nodePaths,
  type RecordRef,
  type RelationOf,
  type Row,
  type RowQuery,
  readByIds,
  readPagesBelow,
  readRow,
  readRows,
  slots,
} from './rows.ts';

/** Resolver of a record by its integer id. It throws for a number that is no id. */
export const findByDatabaseId =
  <M extends RecordType>(model: M) =>
  (_parent: unknown, { databaseId }: { databaseId: number }, context: Context, info: GraphQLResolveInfo) =>
    readRow(model, { ...byId, values: { id: checkDatabaseId(databaseId, 'databaseId') } }, { context, info });

const byId = { variant: 'one', rows: () => ({ where: { id: slots.id } }) };

/** The viewer's record that meets a condition, null if there is none. At most one record may meet it. */
export const findVisible = (type: RecordRef<ListedType>, condition: (viewer: ViewerRef) => object) =>
  findFirst(type, () => ({ where: condition(currentViewer) }));

/** The first record of a list in its default order. */
export const findNewest = (type: RecordRef<ListedType>) =>
  findFirst(type, () => ({ orderBy: orderBy(defaultOrder(type.modelName)) }));

/** The first of some rows. It does not depend on the parent, so an operation reads it once for all parents. */
const findFirst = (type: RecordRef<ListedType>, rows: RowQuery['rows']) =>
  ({
    type,
    nullable: true,
    extensions: needing({}),
    resolve: (_parent: unknown, _args: unknown, context: Context, info: GraphQLResolveInfo) =>
      context.loaders.once(placeOf(info), () =>
        readRow(type.modelName, { variant: 'first', rows }, { context, info }),
      ),
  }) as const;

/** A to-one link, by the column that holds the id of the record: null if the viewer may not see the record. */
export function toOne<M extends ListedType, Column extends string>(type: RecordRef<M>, column: Column) {
  const model = type.modelName;
  return {
    type,
    nullable: true,
    extensions: needing({ columns: [column], filter: { link: model, by: column } }),
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
export function children<M extends RecordType>(type: RecordRef<M>, relation: string, orderBy: object) {
  return {
    type: [type] as [typeof type],
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
    {
      columns: [first, second],
    },
  );

/** A field for a list. */
export interface ListResolver<Parent> {
  readonly extensions: object;
  resolve(
    parent: Parent,
    args: ListArguments,
    context: Context,
    info: GraphQLResolveInfo,
  ): Promise<Connection<{ readonly id: number }>>;
}

/** A list of all the viewer's records of a model. It does not depend on the parent, so an operation reads it once. */
export function viewerList<M extends ListedType>(model: M) {
  return {
    extensions: needing({}),
    resolve: async (_parent: unknown, args: ListArguments, context: Context, info: GraphQLResolveInfo) => {
      const { order, filter } = readList(model, args, context.viewer);
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
export function relatedList<P extends RecordType, M extends ListedType>(
  parentModel: P,
  relation: RelationOf<P>,
  model: M,
) {
  const listed = { parentModel, relation, model };
  return {
    extensions: needing({}),
    resolve: async (
      parent: { id: number },
      args: ListArguments,
      context: Context,
      info: GraphQLResolveInfo,
    ) => {
      const { loaders, viewer } = context;
      const { order, filter } = readList(model, args, viewer);
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

const needing = (needs: FieldRequirements) => ({ needs });

function missing(relation: string): never {
  throw new Error(`a row was read without its ${relation}`);
}
