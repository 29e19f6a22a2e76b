/**
 * Queries for rows, in a part of Prisma's own language: they mean what they mean to Prisma's client. Their types are
 * made of those that Prisma generates, so that a name that a model does not have does not compile.
 */

import type PrismaTypes from '../generated/pothos.ts';
import type { Prisma } from '../generated/prisma/client.ts';

export type Model = Prisma.ModelName;

/**
 * The place of a value in a query that is run many times: the query is written as SQL once, and each run gives the values
 * by their names.
 */
export class Slot {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/** The values of a run. */
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

/** What holds of the rows: of columns, of `some` row of a list, of the one row of a link. */
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

/** Text that a column has, or begins with, without regard to case: a pattern, in which %, _ and \\ are what they are to LIKE. */
type TextPattern =
  | { readonly contains: string; readonly mode: 'insensitive' }
  | { readonly startsWith: string; readonly mode: 'insensitive' };

/** An infinite time, of which there is no `Date`, is a number. */
type Comparable<Value> = NonNullable<Value> | (Date extends Value ? number : never);

type Direction = 'asc' | 'desc' | { readonly sort: 'asc' | 'desc'; readonly nulls: 'first' | 'last' };

type Order<M extends Model> = { readonly [C in keyof Columns<M>]?: Direction };

/** An order by columns that were chosen at run time. */
export type RowOrder = Readonly<Record<string, Direction>>;

/** How PostgreSQL plans a statement. */
export interface Planning {
  /**
   * Whether it plans the statement each time, for the values of this run. Otherwise it may use one plan for all values
   * (`plan_cache_mode`), which is faster, but a guess where it depends on the values how many rows a condition leaves.
   */
  readonly plansEachTime?: boolean;
}

/** A query that was put together at run time: a name that is not the model's is an error only when it is written. */
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
