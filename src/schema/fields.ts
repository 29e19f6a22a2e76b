/** The fields that most types have: queries for a record and for lists, and what a null means. */

import type { GraphQLField, GraphQLResolveInfo } from 'graphql';
import type { ListedType, RecordType } from '../database/models.ts';
import { builder } from './builder.ts';
import type { Context } from './context.ts';
import type { FilterableType } from './filtering/fields.ts';
import { filterRef, orderRef } from './filtering/refs.ts';
import type { ListArguments } from './filtering/request.ts';
import type { Connection } from './loading/pagination.ts';
import { findByDatabaseId, relatedList, viewerList } from './loading/reads.ts';
import type { RelationOf } from './loading/rows.ts';

/** A type of records. The types of Pothos cannot say what holds for each, so the functions of this module treat all alike. */
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
 * @param description without a word about null. The REST interface has it as it is.
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

/**
 * Adds the queries for records of a type, such as `dttDevice` and `dttDevices`, and the list of a user's.
 * @param record the type.
 * @param one the description of the query for one record, and `all` that of the list.
 */
export function addQueries(
  model: ListedType,
  record: { readonly name: string },
  { one, all }: { readonly one: string; readonly all: string },
): void {
  const name = `${model.charAt(0).toLowerCase()}${model.slice(1)}`;
  builder.queryField(name, (t) =>
    t.field({
      type: record as AnyRecord,
      nullable: true,
      args: recordArguments,
      description: one,
      resolve: findByDatabaseId(model),
    }),
  );
  addViewerList(`${name}s`, model, record, all, viewerList(model));
}

type ListField = ReturnType<typeof listField<unknown>>;
type ViewerField = ReturnType<typeof viewerField>;

/** What belongs to the viewer alone. The only user that can be read is the viewer, so these are fields of `User` as well. */
export const ofViewer = { lists: new Map<string, ListField>(), fields: new Map<string, ViewerField>() };

/** Adds a list of the viewer's records to `Query` and `User`. */
export function addViewerList(
  name: string,
  listed: FilterableType,
  record: { readonly name: string },
  description: string,
  resolver: ListResolver<unknown>,
): void {
  const list = listField(listed, record, description, resolver);
  builder.queryField(name, (t) => t.connection(...list));
  if (listed !== 'User') ofViewer.lists.set(name, list);
}

/** Adds a field for a record of the viewer's to `Query` and `User`. */
export function addViewerField(name: string, ...field: Parameters<typeof viewerField>): void {
  const options = viewerField(...field);
  builder.queryField(name, (t) => t.field(options));
  ofViewer.fields.set(name, options);
}

const viewerField = (
  record: { readonly name: string },
  description: string,
  resolver: {
    readonly extensions: Readonly<Record<string, unknown>>;
    resolve(...given: ResolverArguments<unknown>): Promise<{ readonly id: number } | null>;
  },
) => ({ type: record as AnyRecord, nullable: true, description, ...resolver }) as const;

/** A connection of the viewer's records of a model that a relation ties to the parent, as the arguments of `t.connection`. */
export const relatedListField = <P extends RecordType>(
  parent: { readonly model: P; readonly relation: RelationOf<P> },
  model: ListedType,
  record: { readonly name: string },
  description: string,
) => listField(model, record, description, relatedList(parent.model, parent.relation, model));

type ResolverArguments<Parent, Args = object> = [Parent, Args, Context, GraphQLResolveInfo];

interface ListResolver<Parent> {
  readonly extensions: object;
  resolve(...given: ResolverArguments<Parent, ListArguments>): Promise<Connection<{ readonly id: number }>>;
}

/** A connection with its resolver. */
function listField<Parent>(
  listed: FilterableType,
  record: { readonly name: string },
  description: string,
  { extensions, resolve }: ListResolver<Parent>,
) {
  const options = {
    type: record as AnyRecord,
    nullable: true,
    args: listArguments(listed),
    description,
    extensions: { ...extensions, ...nullOnlyWithError },
    resolve,
  } as const;
  return [options, connectionOf(record as AnyRecord)] as const;
}

const newConnection = (type: AnyRecord) => builder.connectionObject({ type, name: `${type.name}Connection` });
const connections = new Map<string, ReturnType<typeof newConnection>>();

/** The connection of a type: there is one, however many lists there are. */
function connectionOf(type: AnyRecord): ReturnType<typeof newConnection> {
  const connection = connections.get(type.name) ?? newConnection(type);
  connections.set(type.name, connection);
  return connection;
}
