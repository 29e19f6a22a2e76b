/** What a field says of itself, in its extensions: what it needs of the row that it belongs to, and its meaning in a filter. */

import type { GraphQLObjectType } from 'graphql';
import type { ListedType, ViewerRef } from '../database/models.ts';

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
