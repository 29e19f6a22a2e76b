/** How statistics are read: what the viewer may see, counted and added up in groups by PostgreSQL. */

import type { GraphQLResolveInfo } from 'graphql';
import {
  type GroupedRow,
  groupedStatement,
  isUnknownTimeZone,
  type Measure,
  type Period,
} from '../../database/reader/grouped.ts';
import { argumentError } from '../../errors.ts';
import type { Context } from '../context.ts';
import { readFilter } from '../filtering/condition.ts';
import type { FilterInput } from '../filtering/refs.ts';
import { fieldSiteOf } from './fieldSite.ts';
import type { RelationOf, Row } from './rows.ts';
import { selectFor } from './selection.ts';
import { readTimeZone, unknownTimeZone } from './timeZone.ts';
import { type Model, visible } from './visible.ts';

/** How many groups statistics may have: by default those of a year by days. */
export const groupLimit = { default: 366, highest: 1_000 } as const;

/**
 * What statistics count for in the complexity of an operation, beside their groups: all of the viewer's sessions are read,
 * and all segments of these.
 */
export const statisticsWeight = 1_000;

/** One number or time of a group. A mean is of the values that there are. */
export type Figure = Omit<Measure, 'does'> & { readonly does: Measure['does'] | 'mean' };
type Figures = Readonly<Record<string, Figure>>;

/** What there are statistics about. */
export interface Subject<M extends Model = Model> {
  readonly model: M;
  /** The relation to the parts of a record. */
  readonly parts: RelationOf<M>;
  /** What decides in which period a record is: a field, and its column. */
  readonly time: { readonly field: string; readonly column: string };
  /** The types of a group and of the total, whose fields are figures and keys by these names. */
  readonly types: { readonly group: string; readonly total: string };
  readonly figures: Figures;
  /** Keys beside periods, by the columns of records of which the first that is not null counts. */
  readonly keys: Readonly<Record<string, readonly string[]>>;
  /** Keys that are columns of the parts. */
  readonly partKeys: Readonly<Record<string, string>>;
}

export interface StatisticsArguments {
  readonly where?: FilterInput | null | undefined;
  /** The units of periods, and names of keys. */
  readonly by?: readonly string[] | null | undefined;
  readonly timeZone?: string | null | undefined;
  readonly fill?: boolean | null | undefined;
  readonly maxGroups?: number | null | undefined;
}

export interface StatsPeriod {
  readonly date: string;
  readonly from: Date;
  readonly to: Date;
}

/** The figures of a group, or of all. Without values there is a count, of none, and nothing else. */
export type FigureRow<S extends Subject> = {
  readonly [Name in keyof S['figures']]: S['figures'][Name]['does'] extends 'count'
    ? number
    : S['figures'][Name]['does'] extends 'first' | 'last'
      ? Date | null
      : number | null;
};

/** Figures with the keys of their group, of which those are null that it was not grouped by. */
export type GroupRow<S extends Subject> = FigureRow<S> & { readonly period: StatsPeriod | null } & {
  readonly [Name in keyof S['keys']]: Row<S['model']>[S['keys'][Name][number] & keyof Row<S['model']>] | null;
} & { readonly [Name in keyof S['partKeys']]: string | null };

export interface Statistics<S extends Subject> {
  readonly timeZone: string;
  readonly total: FigureRow<S>;
  readonly groups: GroupRow<S>[];
}

/** Resolver of the statistics about all records of a kind that the viewer may see. */
export const readStatistics =
  <S extends Subject>(subject: S) =>
  (
    _parent: unknown,
    args: StatisticsArguments,
    context: Context,
    info: GraphQLResolveInfo,
  ): Promise<Statistics<S>> =>
    context.loaders.once(fieldSiteOf(info).key, () => read(subject, args, context, info));

async function read<S extends Subject>(
  { model, parts, time, types, figures, keys, partKeys }: S,
  args: StatisticsArguments,
  context: Context,
  info: GraphQLResolveInfo,
): Promise<Statistics<S>> {
  const { by, unit, timeZone, maxGroups } = checked(args);
  const { where } = args;
  const condition = readFilter(model, where, context.viewer);
  const seen = visible[model](context.viewer);
  // The types of groups and of the total say what they need by the names of figures and keys, as a row's does by columns.
  const below = (field: string, typeName: string) => selectFor(info, context, { paths: [[field]], typeName });
  const selected = { ...below('groups', types.group), ...below('total', types.total) };
  const wanted = pick(figures, (name) => Object.hasOwn(selected, name));
  const isGrouped = Object.hasOwn(selectFor(info, context), 'groups');
  const unkeyed = Object.fromEntries(
    [...Object.keys(keys), ...Object.keys(partKeys)].map((name) => [name, null]),
  );
  const isKey = (name: string) => isGrouped && by.has(name);
  const { text, values } = groupedStatement(model, {
    where: condition ? { AND: [seen, condition] } : seen,
    parts,
    measures: measuresOf(wanted),
    period:
      unit && isGrouped
        ? { column: time.column, unit, timeZone, fill: args.fill ? boundsOf(time.field, where) : undefined }
        : undefined,
    keys: pick(keys, isKey),
    partKeys: pick(partKeys, isKey),
    atMost: maxGroups,
  });
  const [total, ...groups] = await context.sql.run<GroupedRow>(text, values).catch((error: unknown) => {
    throw isUnknownTimeZone(error) ? unknownTimeZone(timeZone) : error;
  });
  if (!total) throw new Error('statistics without a total');
  if (groups.length > maxGroups) throw tooManyGroups(maxGroups);
  // Of the figures and keys they have those that are selected and grouped by; no other is read, or it is null.
  const shaped = (row: GroupedRow) => ({ ...unkeyed, ...figuresOf(row, wanted) }) as GroupRow<S>;
  return { timeZone, total: shaped(total), groups: groups.map(shaped) };
}

const units: ReadonlySet<string> = new Set(['day', 'week', 'month'] satisfies Period['unit'][]);
const isUnit = (name: string): name is Period['unit'] => units.has(name);

/**
 * The arguments, with what stands for those that were not given.
 * @throws a client error that names the argument which is wrong.
 */
function checked({ by, timeZone, fill, maxGroups }: StatisticsArguments) {
  const names = new Set(by ?? []);
  const [unit, ...others] = [...names].filter(isUnit);
  if (others.length > 0) throw argumentError('by', 'by takes one of DAY, WEEK and MONTH, and not several');
  if (fill && !unit) throw argumentError('fill', 'fill needs DAY, WEEK or MONTH in by');
  const most = maxGroups ?? groupLimit.default;
  if (most < 1 || most > groupLimit.highest)
    throw argumentError('maxGroups', `maxGroups must be an integer from 1 to ${groupLimit.highest}`);
  return { by: names, unit, timeZone: readTimeZone(timeZone ?? 'UTC'), maxGroups: most };
}

/** Between which times a filter lets records through, where it says so by itself or in an `and`. */
function boundsOf(
  field: string,
  where: FilterInput | null | undefined,
): { readonly from: Date | undefined; readonly to: Date | undefined } {
  if (!where) return { from: undefined, to: undefined };
  // As the schema has them, and as `readFilter` has found them to be: none is null.
  const { eq, gt, gte, lt, lte } = (where[field] ?? {}) as Readonly<Record<string, Date | undefined>>;
  const inner = [(where.and ?? []) as FilterInput | readonly FilterInput[]]
    .flat()
    .map((each) => boundsOf(field, each));
  // The database has milliseconds.
  const lows = [eq, gte, gt && new Date(Number(gt) + 1), ...inner.map(({ from }) => from)];
  const highs = [eq, lte, lt && new Date(Number(lt) - 1), ...inner.map(({ to }) => to)];
  const inOrder = (times: readonly (Date | undefined)[]) =>
    times.filter((time) => time !== undefined).toSorted((a, b) => Number(a) - Number(b));
  return { from: inOrder(lows).at(-1), to: inOrder(highs)[0] };
}

function tooManyGroups(most: number): Error {
  const more = most < groupLimit.highest ? `for up to ${groupLimit.highest} in maxGroups, ` : '';
  return argumentError(
    'maxGroups',
    `There are more than ${most} groups: ask ${more}for longer periods, fewer keys in by, or a shorter time in where`,
  );
}

/** What the statement has to find out for the figures: for a mean, a sum and of how many it is. Rows are always counted. */
function measuresOf(figures: Figures): Record<string, Measure> {
  const measures: Record<string, Measure> = { [rowCount]: { of: 'rows', does: 'count' } };
  for (const [name, { does, ...figure }] of Object.entries(figures)) {
    if (does === 'mean') measures[countFor(name)] = { ...figure, does: 'count' };
    measures[name] = { ...figure, does: does === 'mean' ? 'sum' : does };
  }
  return measures;
}

const rowCount = 'rowCount';
const countFor = (name: string) => `${name} count`;

function figuresOf(row: GroupedRow, figures: Figures): Readonly<Record<string, unknown>> {
  const found = Object.entries(figures).map(([name, { does }]) => {
    const value = numberOf(row[name]);
    if (does === 'count') return [name, value ?? 0];
    if (value === null) return [name, null];
    if (does === 'sum') return [name, rounded(value)];
    return [name, does === 'mean' ? rounded(value / Number(row[countFor(name)])) : new Date(value)];
  });
  return { ...row, ...Object.fromEntries(found), period: periodOf(row) };
}

/** What the database gives for a measure: a number, or nothing. */
const numberOf = (value: unknown): number | null => (typeof value === 'number' ? value : null);

/** In which order PostgreSQL adds up is not certain, nor are the last digits: what is asked twice is to be the same. */
const rounded = (value: number): number => Number(value.toPrecision(12));

function periodOf({ period, from, to }: GroupedRow): StatsPeriod | null {
  if (typeof period !== 'number' || typeof from !== 'number' || typeof to !== 'number') return null;
  const [date = ''] = new Date(period * 86_400_000).toISOString().split('T');
  return { date, from: new Date(from), to: new Date(to) };
}

const pick = <Value>(from: Readonly<Record<string, Value>>, isWanted: (name: string) => boolean) =>
  Object.fromEntries(Object.entries(from).filter(([name]) => isWanted(name)));
