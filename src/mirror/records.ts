/**
 * Describes each kind of record: how a record of the REST interface becomes rows, and in which tables. A field that a response leaves
 * out is left out of the row as well, so that the mirror keeps its value.
 */

import type { z } from 'zod';
import type { ListedType } from '../database/models.ts';

type Value = string | number | boolean | Date | null | undefined;
export type Row = { id: number } & Record<string, Value>;

/** A record as the mirror stores it. */
export interface MirrorRecord {
  readonly row: Row;
  /** The rows that belong to it, such as the segments of a session. */
  readonly children?: readonly Row[];
  /** Only templates: whether it is the account's active one. */
  readonly isActive?: boolean;
}

/** A kind of records: the paths that the upstream has for them, the schemas that read them, and the tables that store them. */
export interface Kind {
  /** Its name in reports. */
  readonly name: string;
  readonly table: Exclude<ListedType, 'User'>;
  /** The table of the rows that belong to its records, such as segments, and the column with the id of the record. */
  readonly children?: { readonly table: string; readonly parent: string };
  /** The path of the list. The path of a record has its id after it. */
  readonly list: string;
  /** Whether an upstream may lack the list, which is not documented. */
  readonly isOptional?: true;
  /**
   * The schema of a record in a list that leaves out details: only the record by its id has them. Both kinds that have one do not
   * prove the owner: a template may belong to any account, and a DTT session names no owner.
   */
  readonly summary?: z.ZodType<MirrorRecord>;
  /** The schema of a record by its id, and in a list that leaves out nothing. */
  readonly record: z.ZodType<MirrorRecord>;
}
