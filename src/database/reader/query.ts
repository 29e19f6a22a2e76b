/** Queries for rows: a part of Prisma's query language, with the same meaning as in Prisma's client. */

import type PrismaTypes from '../generated/pothos.ts';
import type { Prisma } from '../generated/prisma/client.ts';

export type ModelName = Prisma.ModelName;

/** A condition on the rows of a model. A part of it that is not supported is an error when the SQL is written. */
export type Where<M extends ModelName> = PrismaTypes[M]['Where'];

/**
 * A placeholder for a value in a query that runs many times: the query is translated to SQL once, and each run supplies the
 * values by name.
 */
export class Slot {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/** The values of the slots for one run, by name. */
export type SlotValues = Readonly<Record<string, unknown>>;

type Direction = 'asc' | 'desc' | { readonly sort: 'asc' | 'desc'; readonly nulls: 'first' | 'last' };

/** An order by columns. */
export type RowOrder = Readonly<Record<string, Direction>>;

/** How PostgreSQL plans a statement. */
export interface Planning {
  /**
   * Whether PostgreSQL plans the statement for the values of each run. Otherwise it may reuse one plan for all values
   * (`plan_cache_mode`): faster, but a bad guess where the number of matching rows depends on the values.
   */
  readonly plansEachTime?: boolean;
}

/** A name that is not a field of the model, and a part that is not supported, are errors when the SQL is written. */
export interface SelectQuery extends Planning {
  /** Columns, as `true`; relations to lists, as queries for their rows; `_count`, as Prisma has it. */
  readonly select: object;
  /** A condition on columns, on `some` row of a list, or on the one row of a link. */
  readonly where?: object;
  readonly orderBy?: RowOrder | readonly RowOrder[];
  readonly take?: number | Slot;
  readonly skip?: number | Slot;
}
