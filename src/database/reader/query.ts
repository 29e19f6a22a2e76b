/**
 * Queries for rows, in a subset of Prisma's query language, with the same meaning as in Prisma's client. Their types are
 * derived from the types that Prisma generates, so a field that a model does not have is a compile error.
 */

import type PrismaTypes from '../generated/pothos.ts';
import type { Prisma } from '../generated/prisma/client.ts';

export type Model = Prisma.ModelName;

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

type Columns<M extends Model> = PrismaTypes[M]['Shape'];
type Relations<M extends Model> = PrismaTypes[M]['Relations'];

/** The model that a relation leads to. */
type Related<M extends Model, R extends keyof Relations<M>> = Relations<M>[R] extends {
  Name: infer N extends Model;
}
  ? N
  : never;
type Lists<M extends Model> = keyof Relations<M> & PrismaTypes[M]['ListRelations'];
type Links<M extends Model> = Exclude<keyof Relations<M>, PrismaTypes[M]['ListRelations']>;

/** A query for rows of one model, or of one of several. */
export type SelectQuery<M extends Model = Model> = {
  [N in M]: {
    readonly select: SelectShape<N>;
    readonly where?: Condition<N>;
    readonly orderBy?: Order<N> | readonly Order<N>[];
    readonly take?: number | Slot;
    readonly skip?: number | Slot;
  };
}[M];

/** Columns, as `true`; relations to lists, as queries for their rows; `_count`, as Prisma has it. */
export type SelectShape<M extends Model> = { readonly [C in keyof Columns<M>]?: true } & {
  readonly [R in Lists<M>]?: SelectQuery<Related<M, R>>;
} & {
  readonly _count?: {
    readonly select: { readonly [R in Lists<M>]?: true | { readonly where: Condition<Related<M, R>> } };
  };
};

/** A condition on rows: on their columns, on `some` row of a list, or on the one row of a link. */
export type Condition<M extends Model> = { readonly [C in keyof Columns<M>]?: Comparison<Columns<M>[C]> } & {
  readonly [R in Lists<M>]?: { readonly some: Condition<Related<M, R>> };
} & { readonly [R in Links<M>]?: Condition<Related<M, R>> } & {
  readonly AND?: readonly Condition<M>[];
  readonly OR?: readonly Condition<M>[];
  readonly NOT?: Condition<M>;
};

type Comparison<Value> =
  | Comparable<Value>
  | Slot
  | (null extends Value ? null : never)
  | {
      readonly equals?: Comparable<Value>;
      readonly in?: readonly Comparable<Value>[] | Slot;
      readonly lt?: Comparable<Value>;
      readonly lte?: Comparable<Value>;
      readonly gt?: Comparable<Value>;
      readonly gte?: Comparable<Value>;
      readonly not?: Comparable<Value> | null;
    }
  | (string extends Value ? TextPattern : never);

/** Text that a column contains or starts with, regardless of case. It is a pattern: %, _ and \\ have their meaning in LIKE. */
type TextPattern =
  | { readonly contains: string; readonly mode: 'insensitive' }
  | { readonly startsWith: string; readonly mode: 'insensitive' };

/** An infinite time is a number, since no `Date` can be infinite. */
type Comparable<Value> = NonNullable<Value> | (Date extends Value ? number : never);

type Direction = 'asc' | 'desc' | { readonly sort: 'asc' | 'desc'; readonly nulls: 'first' | 'last' };

type Order<M extends Model> = { readonly [C in keyof Columns<M>]?: Direction };

/** An order by columns that are chosen at run time. */
export type RowOrder = Readonly<Record<string, Direction>>;

/** How PostgreSQL plans a statement. */
export interface Planning {
  /**
   * Whether PostgreSQL plans the statement for the values of each run. Otherwise it may reuse one plan for all values
   * (`plan_cache_mode`): faster, but a bad guess where the number of matching rows depends on the values.
   */
  readonly plansEachTime?: boolean;
}

/** A query that is built at run time. A name that is not a field of the model is an error when the SQL is written. */
export interface PlannedQuery extends Planning {
  readonly select: object;
  readonly where?: object;
  /**
   * Conditions of which each row has to meet at least one. The statement reads the rows of each condition separately, in
   * order and no more of them than the page needs, so that PostgreSQL can use an index for each. Of an OR in `where` it
   * would read and sort all rows.
   */
  readonly anyOf?: readonly object[];
  readonly orderBy?: RowOrder | readonly RowOrder[];
  readonly take?: number | Slot;
  readonly skip?: number | Slot;
}
