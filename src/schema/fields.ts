/** Helpers for types of records: columns, queries for a record and for lists, and the meaning of null. */

import type { GraphQLField } from 'graphql';
import type { ListedType, RecordType } from '../database/models.ts';
import { fieldOf } from '../database/reader/dataModel.ts';
import { builder } from './builder.ts';
import { type FilterableType, filterRef, orderRef } from './filtering/filter.ts';
import {
  findByDatabaseId,
  type findNewest,
  type ListResolver,
  relatedList,
  viewerList,
} from './loading/reads.ts';
import type { RecordRef, RelationOf, Row } from './loading/rows.ts';

/** A type of records, or the interface of devices. Pothos has no type for what they have in common. */
type AnyRecord = ReturnType<typeof builder.objectRef<{ readonly id: number }>>;

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
      description:
        'The order, instead of the default one. A cursor is only valid with the same order and conditions.',
    }),
  }));

/**
 * The extension of a field that is null only if it has failed. It is nullable so that its error erases no sibling field. In a response
 * without errors, and so in every successful REST response, it is never null.
 */
export const nullOnlyWithError = { nullOnlyWithError: true } as const;

/** Whether a field has this extension. */
export const isNullOnlyWithError = ({ extensions }: GraphQLField<unknown, unknown>): boolean =>
  extensions.nullOnlyWithError === true;

/** Options of a field that may be null. */
export const orNull = (description: string) => ({ nullable: true, description }) as const;

/**
 * Options of a field that is null only in a mirror, where null means that the value is not known. In any other database a trigger
 * rejects null (`has_values` in the migration), so a REST response, which is never made from mirrored rows, has a value there.
 * @param description without a word about null, as the REST interface shows it.
 */
export const nullOnlyInMirror = (description: string) =>
  ({
    nullable: true,
    description: `${description} Null where a mirror does not know it.`,
    extensions: { nullOnlyInMirror: { description } },
  }) as const;

/** The description of a field with these options; undefined for any other field. */
export function descriptionIfNullOnlyInMirror({
  extensions,
}: Pick<GraphQLField<unknown, unknown>, 'extensions'>): string | undefined {
  // Only `nullOnlyInMirror` writes this extension.
  return (extensions.nullOnlyInMirror as { description: string } | undefined)?.description;
}

/** A field that shows a column. It is nullable if the column is. */
interface ColumnField {
  readonly description: string;
  /** By default, the column of the same name. */
  readonly column?: string;
  readonly extensions?: object;
}

interface RecordOptions<M extends RecordType> {
  readonly description: string;
  /** An interface that has the ids already. */
  readonly interfaces?: readonly object[];
  /** The fields that show a column, by their names: a description, or more. */
  readonly columns: Readonly<Record<string, string | ColumnField>>;
  readonly fields?: (t: FieldsOf<M>) => object;
}

type FieldsOf<M extends RecordType> = PothosSchemaTypes.ObjectFieldBuilder<
  (typeof builder)['$inferSchemaTypes'],
  Row<M>
>;

/** Adds the type of a model's records. */
export function record<M extends RecordType>(
  model: M,
  { columns, fields, ...options }: RecordOptions<M>,
): RecordRef<M> {
  const databaseId = { column: 'id', description: 'The integer id of the REST interface.' };
  const exposed = Object.entries(options.interfaces ? columns : { databaseId, ...columns });
  const settings = {
    ...options,
    id: { field: 'id' },
    fields: (t: FieldsOf<M>) => {
      const shown = exposed.map(([name, given]) => {
        const { column = name, ...field } = typeof given === 'string' ? { description: given } : given;
        const { type, isRequired } = fieldOf(model, column);
        return [name, t.expose(column as never, { ...field, type, nullable: !isRequired } as never)] as const;
      });
      return { ...Object.fromEntries(shown), ...fields?.(t) };
    },
  };
  // Pothos cannot check the columns of a model that is a parameter. `fieldOf` does so when the schema is built.
  return builder.prismaNode(model, settings as never) as unknown as RecordRef<M>;
}

/**
 * Adds the type of a model's records, the queries for them, such as `dttDevice` and `dttDevices`, and the list of a user's.
 * @param one the description of the query for one record, and `all` that of the list.
 */
export function listedRecord<M extends ListedType>(
  model: M,
  { one, all, ...options }: RecordOptions<M> & { readonly one: string; readonly all: string },
): RecordRef<M> {
  const type = record(model, options);
  const name = lowerFirst(model);
  builder.queryField(name, (t) =>
    t.field({
      type: type as AnyRecord,
      nullable: true,
      args: recordArguments,
      description: one,
      resolve: findByDatabaseId(model),
    }),
  );
  addViewerList(`${name}s`, model, type, all, viewerList(model));
  return type;
}

/** The name of a query for a type. */
export const lowerFirst = (name: string) => `${name.charAt(0).toLowerCase()}${name.slice(1)}`;

/** Fields of the viewer. The only user that can be read is the viewer, so they are fields of `User` as well. */
export const ofViewer = {
  lists: new Map<string, ReturnType<typeof listField<unknown>>>(),
  fields: new Map<string, Parameters<typeof addViewerField>[1]>(),
};

/** Adds a list of the viewer's records to `Query` and `User`. */
export function addViewerList(...[name, ...given]: [string, ...Parameters<typeof listField<unknown>>]): void {
  const list = listField(...given);
  builder.queryField(name, (t) => t.connection(...list));
  if (name !== 'users') ofViewer.lists.set(name, list);
}

/** Adds a field for a record of the viewer's to `Query` and `User`. */
export function addViewerField(
  name: string,
  options: ReturnType<typeof findNewest> & { readonly description: string },
): void {
  builder.queryField(name, (t) => t.field(options));
  ofViewer.fields.set(name, options);
}

/** A connection of the records that a relation joins to the parent, as the arguments of `t.connection`. */
export const listBelow = <P extends RecordType>(
  parent: RecordRef<P>,
  relation: RelationOf<P>,
  type: RecordRef<ListedType>,
  description: string,
) => listField(type.modelName, type, description, relatedList(parent.modelName, relation, type.modelName));

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
    extensions: { ...extensions, ...nullOnlyWithError },
    resolve,
  } as const;
  return [options, connectionOf(type)] as const;
}

const newConnection = (type: AnyRecord) => builder.connectionObject({ type, name: `${type.name}Connection` });
const connections = new Map<string, ReturnType<typeof newConnection>>();

/** The connection of a type, which all its lists share. */
function connectionOf(type: AnyRecord): ReturnType<typeof newConnection> {
  const connection = connections.get(type.name) ?? newConnection(type);
  connections.set(type.name, connection);
  return connection;
}
