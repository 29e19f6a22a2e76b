/** Options of the fields that most types have. */

import type { GraphQLField } from 'graphql';
import { builder } from './builder.ts';
import type { ListedType } from './filtering/filterable.ts';
import { filterRef, orderRef } from './filtering/refs.ts';
import { findByDatabaseId, relatedList, viewerList } from './loading/reads.ts';
import type { RelationOf } from './loading/rows.ts';
import type { Model } from './loading/visible.ts';

/** The arguments of a field that finds a record by its integer id. */
const recordArguments = builder.args((t) => ({
  databaseId: t.int({ required: true, description: 'The integer id of the REST interface. At least 1.' }),
}));

/** The arguments of lists, besides those of every Relay connection. */
const listArguments = (listed: ListedType) =>
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

/** The viewer's record with an integer id, null if there is none. */
export function recordField<M extends Model, Type>(model: M, type: Type, description: string) {
  return {
    type,
    nullable: true,
    args: recordArguments,
    description,
    resolve: findByDatabaseId(model),
  } as const;
}

/** A connection of all the viewer's records of a model. */
export function viewerListField<M extends Model, Type>(model: M, type: Type, description: string) {
  return listField(model, type, description, viewerList(model));
}

/** A connection of the viewer's records of a model that a relation ties to the parent. */
export function relatedListField<P extends Model, M extends Model, Type>(
  parent: { readonly model: P; readonly relation: RelationOf<P> },
  model: M,
  type: Type,
  description: string,
) {
  return listField(model, type, description, relatedList(parent.model, parent.relation, model));
}

/** A connection with its resolver. */
export function listField<Type, Resolve>(
  listed: ListedType,
  type: Type,
  description: string,
  { extensions, resolve }: { readonly extensions: object; readonly resolve: Resolve },
) {
  return {
    type,
    nullable: true,
    args: listArguments(listed),
    description,
    extensions: { ...extensions, ...nullOnlyWithError },
    resolve,
  } as const;
}
