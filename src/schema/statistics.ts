/** Statistics about the viewer's records, which PostgreSQL aggregates in groups: their types, arguments and queries, and how they are read. */

import type { GraphQLResolveInfo } from 'graphql';
import { type ListedType, visibleTo } from '../database/models.ts';
import {
  type GroupedRow,
  groupedStatement,
  isUnknownTimeZone,
  type Measure,
  type Period,
} from '../database/reader/grouped.ts';
import { argumentError } from '../errors.ts';
import { builder } from './builder.ts';
import { type Context, placeOf } from './context.ts';
import { lowerFirst, nullOnlyWithError, toOne } from './fields.ts';
import { type FilterInput, filterRef, readFilter } from './filter.ts';
import { selectFor, showing } from './loading/rows.ts';

/** The limit of groups. The default suffices for a year by day. */
export const groupLimit = { default: 366, highest: 1_000 } as const;

/** In the complexity of an operation, in addition to the groups: all sessions of the viewer are read, with all their segments. */
const weight = 1_000;

/** A number or time of a group. A mean ignores nulls. */
interface Figure extends Omit<Measure, 'does'> {
  readonly does: Measure['does'] | 'mean';
  readonly description: string;
}

type Figures = Readonly<Record<string, Figure>>;

/** A kind of records that statistics are about. */
interface Subject {
  readonly model: ListedType;
  /** The relation to the parts of a record. */
  readonly parts: string;
  /** The time that determines the period of a record: the field and its column. */
  readonly time: { readonly field: string; readonly column: string };
  readonly figures: Figures;
  /** The keys besides periods. */
  readonly keys: Readonly<Record<string, Key>>;
  /** The name of the records in descriptions. */
  readonly noun: string;
  readonly descriptions: Readonly<Record<'query' | 'figures' | 'total' | 'period', string>>;
}

/** A key: the first of its columns that is not null, or a column of the parts. */
type Key = ({ readonly columns: readonly [string, ...string[]] } | { readonly partColumn: string }) & {
  /** The value of `by`: its name and its description. */
  readonly by: readonly [string, string];
  readonly type: 'Int' | 'String';
  readonly description: string;
  /** The field for the record whose id it is. */
  readonly link?: {
    readonly name: string;
    readonly model: ListedType;
    readonly description: string;
  };
};

/** The types of a group and of the total. Their fields have the names of figures and keys. */
const groupType = (model: ListedType) => `${model}StatsGroup`;
const totalType = (model: ListedType) => `${model}StatsTotal`;

interface StatisticsArguments {
  readonly where?: FilterInput | null | undefined;
  /** A unit of periods, and names of keys. */
  readonly by?: readonly string[] | null | undefined;
  readonly timeZone?: string | null | undefined;
  readonly fill?: boolean | null | undefined;
  readonly maxGroups?: number | null | undefined;
}

/**
 * The figures of a group or of the total. Without values a count is 0, and any other figure is null. A group also has its period
 * and its keys. The fields that show the values have their types, so they have none here.
 */
type FigureRow = Readonly<Record<string, never>>;

interface Statistics {
  readonly timeZone: string;
  readonly total: FigureRow;
  readonly groups: FigureRow[];
}

/** Reads statistics about all records of a kind that the viewer may see. */
async function readStatistics(
  { model, parts, time, figures, keys }: Subject,
  args: StatisticsArguments,
  context: Context,
  info: GraphQLResolveInfo,
): Promise<Statistics> {
  const { by, unit, timeZone, maxGroups } = readArguments(args);
  const { where } = args;
  const condition = readFilter(model, where, context.viewer);
  const visibleRows = visibleTo(context.viewer, model);
  // The fields of groups and of the total need figures and keys by their names, as the fields of a row need columns.
  const selectedIn = (field: string, typeName: string) => selectFor(info, { paths: [[field]], typeName });
  const selected = {
    ...selectedIn('groups', groupType(model)),
    ...selectedIn('total', totalType(model)),
  };
  const wanted = Object.fromEntries(
    Object.entries(figures).filter(([name]) => Object.hasOwn(selected, name)),
  );
  const isGrouped = Object.hasOwn(selectFor(info), 'groups');
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

function periodOf({ period, from, to }: GroupedRow) {
  if (period == null) return null;
  const date = new Date(period * 86_400_000).toISOString().slice(0, '2026-02-17'.length);
  return { date, from: new Date(Number(from)), to: new Date(Number(to)) };
}

/**
 * Checks the name of a time zone.
 *
 * JavaScript and PostgreSQL know other names of three letters, but with different meanings: `IST` is in India or in Israel, and
 * `CET` has summer time or has none. Only `UTC` and `GMT` mean the same everywhere. Some versions of Node.js accept offsets, which PostgreSQL reads with the opposite sign.
 * @throws a client error for an unknown or ambiguous name.
 */
function readTimeZone(name: string): string {
  const isAmbiguous = /^(?!utc|gmt)[a-z]{3}$/i.test(name);
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

/**
 * A figure of records or of their parts.
 * @param does how the column is aggregated. With `is`, a count counts only rows whose column has that value.
 */
const figureOf =
  (of: Figure['of']) =>
  (does: Figure['does'], description: string, column?: string, is?: boolean): Figure => ({
    of,
    does,
    description,
    column,
    is,
  });
export const records = figureOf('rows');
export const parts = figureOf('parts');

builder.scalarType('LocalDate', {
  description: 'A day of the calendar, such as `2026-02-17`.',
  specifiedByURL: 'https://scalars.graphql.org/andimarek/local-date.html',
});

const StatsPeriod = builder.objectRef<NonNullable<ReturnType<typeof periodOf>>>('StatsPeriod').implement({
  description:
    'A day, a week or a month in a time zone. Its length follows clock changes: a day may have 23 or 25 hours.',
  fields: (t) => ({
    date: t.expose('date', {
      type: 'LocalDate',
      description: 'The day, the Monday that the week begins with, or the first of the month.',
    }),
    from: t.expose('from', { type: 'DateTime', description: 'The instant at which it begins.' }),
    to: t.expose('to', { type: 'DateTime', description: 'The instant at which the next one begins.' }),
  }),
});

/** Options of a field that shows a value of its row by its own name. */
const shown = (name: string, description: string) => ({ description, extensions: showing(name) });

/** The arguments that all statistics have in common. */
const statsArguments = builder.args((t) => ({
  timeZone: t.string({
    defaultValue: 'UTC',
    description:
      'The time zone in which days, weeks and months begin, such as `Europe/Berlin`. Weeks begin on Monday.',
  }),
  fill: t.boolean({
    defaultValue: false,
    description:
      'Whether periods without sessions have groups too, beside each of the other keys that occur: from the first session to the last, or ' +
      'from and to where `where` bounds their time.',
  }),
  maxGroups: t.int({
    defaultValue: groupLimit.default,
    description: `How many groups there may be: more are an error. An integer from 1 to ${groupLimit.highest}.`,
  }),
}));

type StatisticsRef = ReturnType<ReturnType<typeof builder.objectRef<Statistics>>['implement']>;

const periodKeys = {
  DAY: { value: 'day', description: 'By day. At most one of `DAY`, `WEEK` and `MONTH`.' },
  WEEK: { value: 'week', description: 'By week, from Monday.' },
  MONTH: { value: 'month', description: 'By month.' },
} as const;

/**
 * Adds the query for statistics of a model's records, with its types.
 * @returns the type of a group.
 */
export function addStatistics(options: Subject) {
  const { model, noun, descriptions } = options;
  const interfaces = [addFigures(options)];
  const total = builder.objectRef<FigureRow>(totalType(model)).implement({
    description: 'The figures of all sessions together.',
    interfaces,
  });
  const group = builder.objectRef<FigureRow>(groupType(model)).implement({
    description: 'The figures of a group of sessions. Keys that the sessions were not grouped by are null.',
    interfaces,
    fields: (t) => ({
      period: t.expose('period', {
        type: StatsPeriod,
        nullable: true,
        ...shown('period', descriptions.period),
      }),
    }),
  });
  for (const [name, { type, description, link }] of Object.entries(options.keys))
    builder.objectFields(group, (t) => ({
      [name]: t.expose(name, { type, nullable: true, ...shown(name, description) }),
      ...(link && {
        [link.name]: t.field({
          description: link.description,
          ...toOne<ListedType, string>(link.model, name),
        }),
      }),
    }));
  const statistics = builder.objectRef<Statistics>(`${model}Stats`).implement({
    description: `Statistics of ${noun}.`,
    fields: (t) => ({
      timeZone: t.exposeString('timeZone', shown('timeZone', 'The time zone in which the periods begin.')),
      total: t.expose('total', { type: total, ...shown('total', descriptions.total) }),
      groups: t.expose('groups', {
        type: [group],
        ...shown(
          'groups',
          'The groups, none without `by`: from the first period to the last, and then by the other keys in ascending order.',
        ),
      }),
    }),
  });
  addQuery(options, statistics);
  return group;
}

const addFigures = ({ model, figures, descriptions }: Subject) =>
  builder.interfaceRef<FigureRow>(`${model}Figures`).implement({
    description: descriptions.figures,
    fields: (t) =>
      Object.fromEntries(
        Object.entries(figures).map(([name, { does, description }]) => {
          const options = shown(name, description);
          if (does === 'count') return [name, t.exposeInt(name, options)];
          const type = does === 'first' || does === 'last' ? 'DateTime' : 'Float';
          return [name, t.expose(name, { type, nullable: true, ...options })];
        }),
      ),
  });

function addQuery(options: Subject, type: StatisticsRef): void {
  const { model, noun, descriptions } = options;
  const values = Object.entries(options.keys).map(
    ([value, { by }]) => [by[0], { value, description: by[1] }] as const,
  );
  const keys = builder.enumType(`${model}StatsKey`, {
    description: `What ${noun} can be grouped by.`,
    values: { ...periodKeys, ...Object.fromEntries(values) },
  });
  builder.queryField(`${lowerFirst(model)}Stats`, (t) =>
    t.field({
      type,
      nullable: true,
      description: descriptions.query,
      extensions: { ...nullOnlyWithError, weight },
      args: {
        where: t.arg({ type: filterRef(model), description: 'Only sessions that meet these conditions.' }),
        by: t.arg({
          type: [keys],
          defaultValue: [],
          description: 'What the sessions are grouped by: each group has one of each.',
        }),
        ...statsArguments,
      },
      resolve: (_root, args, context, info) =>
        context.loaders.once(placeOf(info), () => readStatistics(options, args, context, info)),
    }),
  );
}
