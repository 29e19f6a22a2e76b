/** Reads statistics about the viewer's records. PostgreSQL aggregates them in groups. */

import type { GraphQLResolveInfo } from 'graphql';
import { type ListedType, visibleTo } from '../../database/models.ts';
import {
  type GroupedRow,
  groupedStatement,
  isUnknownTimeZone,
  type Measure,
  type Period,
} from '../../database/reader/grouped.ts';
import { argumentError } from '../../errors.ts';
import type { Context } from '../context.ts';
import { type FilterInput, readFilter } from '../filter.ts';
import { selectFor } from './rows.ts';

/** The limit of groups. The default suffices for a year by day. */
export const groupLimit = { default: 366, highest: 1_000 } as const;

/**
 * The weight of statistics in the complexity of an operation, in addition to their groups: all sessions of the viewer are
 * read, with all their segments.
 */
export const statisticsWeight = 1_000;

/** A number or time of a group. A mean ignores nulls. */
export type Figure = Omit<Measure, 'does'> & { readonly does: Measure['does'] | 'mean' };
type Figures = Readonly<Record<string, Figure>>;

/** A kind of records that statistics are about. */
export interface Subject {
  readonly model: ListedType;
  /** The relation to the parts of a record. */
  readonly parts: string;
  /** The time that determines the period of a record: the field and its column. */
  readonly time: { readonly field: string; readonly column: string };
  readonly figures: Figures;
  /** The keys besides periods. */
  readonly keys: Readonly<Record<string, Key>>;
}

/** A key: the first of its columns that is not null, or a column of the parts. */
export type Key = { readonly columns: readonly string[] } | { readonly partColumn: string };

/** The types of a group and of the total. Their fields have the names of figures and keys. */
export const typesOf = ({ model }: Pick<Subject, 'model'>) => ({
  group: `${model}StatsGroup`,
  total: `${model}StatsTotal`,
});

interface StatisticsArguments {
  readonly where?: FilterInput | null | undefined;
  /** A unit of periods, and names of keys. */
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

/**
 * The figures of a group or of the total. Without values a count is 0, and any other figure is null. A group also has its period
 * and its keys. The fields that show the values have their types, so they have none here.
 */
export type FigureRow = Readonly<Record<string, never>>;

export interface Statistics {
  readonly timeZone: string;
  readonly total: FigureRow;
  readonly groups: FigureRow[];
}

/** Reads statistics about all records of a kind that the viewer may see. */
export async function readStatistics(
  { model, parts, time, figures, keys }: Subject,
  args: StatisticsArguments,
  context: Context,
  info: GraphQLResolveInfo,
): Promise<Statistics> {
  const { by, unit, timeZone, maxGroups } = readArguments(args);
  const { where } = args;
  const condition = readFilter(model, where, context.viewer);
  const visibleRows = visibleTo(context.viewer, model);
  const types = typesOf({ model });
  // The fields of groups and of the total need figures and keys by their names, as the fields of a row need columns.
  const selectedIn = (field: string, typeName: string) =>
    selectFor(info, context, { paths: [[field]], typeName });
  const selected = { ...selectedIn('groups', types.group), ...selectedIn('total', types.total) };
  const wanted = Object.fromEntries(
    Object.entries(figures).filter(([name]) => Object.hasOwn(selected, name)),
  );
  const isGrouped = Object.hasOwn(selectFor(info, context), 'groups');
  const nullKeys = Object.fromEntries(Object.keys(keys).map((name) => [name, null]));
  const asked = Object.entries(keys).filter(([name]) => isGrouped && by.has(name));
  const { text, values } = groupedStatement(model, {
    where: condition ? { AND: [visibleRows, condition] } : visibleRows,
    parts,
    measures: measuresOf(wanted),
    period:
      unit && isGrouped
        ? { column: time.column, unit, timeZone, fill: args.fill ? boundsOf(time.field, where) : undefined }
        : undefined,
    keys: Object.fromEntries(asked.flatMap(([name, key]) => ('columns' in key ? [[name, key.columns]] : []))),
    partKeys: Object.fromEntries(
      asked.flatMap(([name, key]) => ('partColumn' in key ? [[name, key.partColumn]] : [])),
    ),
    atMost: maxGroups,
  });
  const [total, ...groups] = await context.sql
    .run<GroupedRow>(text, values, condition !== undefined)
    .catch((error: unknown) => {
      throw isUnknownTimeZone(error) ? unknownTimeZone(timeZone) : error;
    });
  if (!total) throw new Error('statistics without a total');
  if (groups.length > maxGroups) throw tooManyGroups(maxGroups);
  // A row has the figures that are selected. No other figure is resolved, and keys that `by` does not name are null.
  const toFigures = (row: GroupedRow) => ({ ...nullKeys, ...figuresOf(row, wanted) }) as FigureRow;
  return { timeZone, total: toFigures(total), groups: groups.map(toFigures) };
}

const units: ReadonlySet<string> = new Set(['day', 'week', 'month'] satisfies Period['unit'][]);
const isUnit = (name: string): name is Period['unit'] => units.has(name);

/**
 * Checks the arguments, and adds the defaults of those that were not given.
 * @throws a client error that names the invalid argument.
 */
function readArguments({ by, timeZone, fill, maxGroups }: StatisticsArguments) {
  const names = new Set(by ?? []);
  const [unit, ...others] = [...names].filter(isUnit);
  if (others.length > 0) throw argumentError('by', 'by takes one of DAY, WEEK and MONTH, and not several');
  if (fill && !unit) throw argumentError('fill', 'fill needs DAY, WEEK or MONTH in by');
  const limit = maxGroups ?? groupLimit.default;
  if (limit < 1 || limit > groupLimit.highest)
    throw argumentError('maxGroups', `maxGroups must be an integer from 1 to ${groupLimit.highest}`);
  return { by: names, unit, timeZone: readTimeZone(timeZone ?? 'UTC'), maxGroups: limit };
}

/** The first and last time that a filter admits, from its conditions on the field and from those in `and`. */
function boundsOf(
  field: string,
  where: FilterInput | null | undefined,
): { readonly from: Date | undefined; readonly to: Date | undefined } {
  if (!where) return { from: undefined, to: undefined };
  // The schema has validated the types, and `readFilter` has rejected null.
  const { eq, gt, gte, lt, lte } = (where[field] ?? {}) as Readonly<Record<string, Date | undefined>>;
  const inner = [(where.and ?? []) as FilterInput | readonly FilterInput[]]
    .flat()
    .map((each) => boundsOf(field, each));
  // Columns have times with milliseconds.
  const lows = [eq, gte, gt && new Date(Number(gt) + 1), ...inner.map(({ from }) => from)];
  const highs = [eq, lte, lt && new Date(Number(lt) - 1), ...inner.map(({ to }) => to)];
  const inOrder = (times: readonly (Date | undefined)[]) =>
    times.filter((time) => time !== undefined).toSorted((a, b) => Number(a) - Number(b));
  return { from: inOrder(lows).at(-1), to: inOrder(highs)[0] };
}

function tooManyGroups(limit: number): Error {
  const more = limit < groupLimit.highest ? `for up to ${groupLimit.highest} in maxGroups, ` : '';
  return argumentError(
    'maxGroups',
    `There are more than ${limit} groups: ask ${more}for longer periods, fewer keys in by, or a shorter time in where`,
  );
}

/** The measures for the figures: a mean needs a sum and a count. Rows are always counted. */
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
    const value = row[name];
    if (typeof value !== 'number') return [name, does === 'count' ? 0 : null];
    if (does === 'count') return [name, value];
    if (does === 'sum') return [name, rounded(value)];
    return [name, does === 'mean' ? rounded(value / Number(row[countFor(name)])) : new Date(value)];
  });
  return { ...row, ...Object.fromEntries(found), period: periodOf(row) };
}

/** Rounds a sum. PostgreSQL may add floats in any order, so the last digits vary, but repeated requests must get the same sum. */
const rounded = (value: number): number => Number(value.toPrecision(12));

function periodOf({ period, from, to }: GroupedRow): StatsPeriod | null {
  if (typeof period !== 'number' || typeof from !== 'number' || typeof to !== 'number') return null;
  const [date = ''] = new Date(period * 86_400_000).toISOString().split('T');
  return { date, from: new Date(from), to: new Date(to) };
}

/** The only abbreviations of three letters that mean the same everywhere. */
const abbreviations = new Set(['UTC', 'GMT']);

/**
 * Checks the name of a time zone.
 *
 * JavaScript and PostgreSQL know other names of three letters, but with different meanings: `IST` is in India or in Israel, and
 * `CET` has summer time or has none. Some versions of Node.js accept offsets, which PostgreSQL reads with the opposite sign.
 * @throws a client error for an unknown or ambiguous name.
 */
function readTimeZone(name: string): string {
  const isAmbiguous = /^[a-z]{3}$/i.test(name) && !abbreviations.has(name.toUpperCase());
  if (isAmbiguous || !/^[a-z]/i.test(name) || !isKnown(name)) throw unknownTimeZone(name, 'and is not');
  return name;
}

/** The client error for a time zone that JavaScript or the database does not know. */
function unknownTimeZone(name: string, what = 'and the database of this gateway does not know'): Error {
  const given = JSON.stringify(name.slice(0, 64));
  return argumentError(
    'timeZone',
    `timeZone must be the name of a time zone, such as "Europe/Berlin" or "UTC", ${what} ${given}`,
  );
}

function isKnown(timeZone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone });
    return true;
  } catch {
    return false;
  }
}
