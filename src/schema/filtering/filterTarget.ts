/** What a field of a list's filter stands for in the database. */

import type { Model, ViewerRef } from '../loading/visible.ts';

export type FilterTarget =
  /** A column, or the first of several columns that has a value. */
  | { readonly columns: readonly [string, ...string[]] }
  /** Whether a condition holds. The condition must never be null in SQL. */
  | { readonly condition: (viewer: ViewerRef) => object }
  /** A linked record, by the column that holds its id. */
  | { readonly link: Model; readonly by: string };
