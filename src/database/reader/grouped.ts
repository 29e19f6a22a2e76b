/**
 * Counts and sums rows in groups, with one statement: the rows themselves and their parts, such as sessions and their
 * segments.
 *
 * Rows and parts are grouped separately, so that a row counts once however many parts it has. The results are then merged by
 * the keys of the groups.
 */

import pg from 'pg';
import { columnOf, fieldOf, listRelation } from '../dataModel.ts';
import type { ModelName } from '../models.ts';
import { conditionOn, createWriter, joinOn, type Statement, type Writer } from './statement.ts';

/** A figure that is computed for each group. A time is in milliseconds since the epoch. */
export interface Measure {
  readonly of: 'rows' | 'parts';
  readonly does: 'count' | 'sum' | 'first' | 'last';
  /** The column with the values; without one, all rows or parts are counted. */
  readonly column?: string | undefined;
  /** Counts only where the column has this value. */
  readonly is?: boolean | undefined;
}

/** Groups by days, weeks from Monday, or months, in the local time of a time zone. */
export interface Period {
  /** The column with the time of a row. */
  readonly column: string;
  readonly unit: 'day' | 'week' | 'month';
  readonly timeZone: string;
  /** If set, periods without rows are groups too: between these times, or from the first row to the last. */
  readonly fill: { readonly from: Date | undefined; readonly to: Date | undefined } | undefined;
}

interface GroupedQuery {
  readonly where: object;
  /** The relation that leads to the parts. */
  readonly parts: string;
  readonly measures: Readonly<Record<string, Measure>>;
  readonly period: Period | undefined;
  /** The keys to group by, each with its columns: the value of a key is the first one that is not null. */
  readonly keys: Readonly<Record<string, readonly [string, ...string[]]>>;
  /** The keys that are columns of the parts. A row counts in each group in which it has parts. */
  readonly partKeys: Readonly<Record<string, string>>;
  /** The limit of groups. One more is read, to find out whether there are more. */
  readonly atMost: number;
}

/**
 * A row of the result: the first one is the total of all groups, and the groups follow in the order of their keys. It has the
 * keys and the measures by their names, and these columns.
 */
export interface GroupedRow extends Readonly<Record<string, unknown>> {
  readonly isTotal: boolean;
  /** The date on which the period begins, in days since 1970; null for rows whose time is in no period. */
  readonly period?: number | null;
  /** When the period begins, and when the next one does. */
  readonly from?: number | null;
  readonly to?: number | null;
}

/** Whether a statement failed because the database does not know the time zone (`invalid_parameter_value`). */
export const isUnknownTimeZone = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && error.code === '22023';

/** @throws an error for a query that is beyond this module. */
export function groupedStatement(model: ModelName, query: GroupedQuery): Statement {
  const values: unknown[] = [];
  const plan = planOf(createWriter(values), model, query);
  const { rowKeys, partKeys, order, measures } = plan;
  const keys = [...rowKeys, ...partKeys];
  const hasParts = Object.values(query.measures).some(({ of }) => of === 'parts');
  const withs = [
    `counted AS MATERIALIZED (${countedRows(plan)})`,
    `by_row AS (${measured(plan, 'rows', partKeys.length > 0 ? rowsByPart(plan) : 'counted', keys)})`,
    ...(hasParts ? [`by_part AS (${measured(plan, 'parts', partsOf(plan), keys)})`] : []),
    // A row may be in several groups of its parts, and counts once in the total.
    `all_rows AS (${partKeys.length > 0 ? measured(plan, 'rows', 'counted', []) : 'TABLE by_row'})`,
    ...(query.period?.fill ? [`gaps AS (${gapsOf(plan, query.period, query.period.fill)})`] : []),
  ];
  const ofParts = hasParts ? ['by_part'] : [];
  const ofGroups = ['by_row', ...ofParts, ...(query.period?.fill ? ['gaps'] : [])];
  const merged = Object.entries(query.measures).map(
    ([name, { does }]) => `${merging[does]}("${name}") AS "${name}"`,
  );
  const groups = `SELECT false AS "isTotal", ${list(keys, merged)} FROM (${together(ofGroups, keys, measures)}) found GROUP BY ${list(keys)}`;
  const noKeys = keys.map((key) => `NULL AS ${key}`);
  const total = `SELECT true AS "isTotal", ${list(noKeys, merged)} FROM (${together(['all_rows', ...ofParts], measures)}) found`;
  const shown = keys.map((key) => (key === periodKey ? `${key} - date '1970-01-01' AS ${key}` : key));
  const text = `WITH ${list(withs)}
    SELECT "isTotal", ${list(shown, measures, query.period ? edgesOf(query.period, plan.zone) : [])}
    FROM (${keys.length === 0 ? total : `${groups} UNION ALL ${total}`}) found
    ORDER BY ${list(['"isTotal" DESC'], order)} LIMIT ${plan.writer.parameter(query.atMost)}::int + 2`;
  return { text, values };
}

/** Shared by all parts of one statement. */
type Plan = ReturnType<typeof planOf>;

function planOf(writer: Writer, model: ModelName, query: GroupedQuery) {
  const relation = listRelation(model, query.parts);
  // Text is ordered by code points, so that the order does not depend on the locale of the database.
  const inOrder = (key: string, of: ModelName, column: string) =>
    fieldOf(of, column).type === 'String' ? `${quoted(key)} COLLATE "C"` : quoted(key);
  const period = query.period ? [periodKey] : [];
  return {
    writer,
    model,
    query,
    /** The join of rows (`r`) and their parts (`p`). */
    joined: `counted r JOIN "${relation.model}" p ON ${joinOn(relation, 'p', 'r')}`,
    /** The keys of the rows, the period first, and the keys of the parts. */
    rowKeys: [...period, ...Object.keys(query.keys).map(quoted)],
    partKeys: Object.keys(query.partKeys).map(quoted),
    /** All keys, as the groups are ordered by them. The columns of a key are of one type. */
    order: [
      ...period,
      ...Object.entries(query.keys).map(([key, [column]]) => inOrder(key, model, column)),
      ...Object.entries(query.partKeys).map(([key, column]) => inOrder(key, relation.model, column)),
    ],
    measures: Object.keys(query.measures).map(quoted),
    /** The placeholder of the parameter with the time zone. */
    zone: query.period ? `${writer.parameter(query.period.timeZone)}::text` : '',
  };
}

/**
 * The rows, with their keys and the columns to measure. They are a CTE of their own, so that PostgreSQL expects few groups:
 * otherwise it would expect about as many days as there are times, and sort the rows.
 */
function countedRows({ writer, model, query, zone }: Plan): string {
  const table = writer.nextTable();
  const column = (name: string) => columnOf(model, name, table);
  const period =
    query.period && `${periodOf(query.period, column(query.period.column), zone)} AS ${periodKey}`;
  const keys = Object.entries(query.keys).map(
    ([name, columns]) => `coalesce(${list(columns.map(column))}) AS ${quoted(name)}`,
  );
  const columns = columnsOf(query, 'rows').map(column);
  return `SELECT ${list([column('id')], period ? [period] : [], keys, columns)}
    FROM "${model}" ${table} WHERE ${conditionOn(writer, model, query.where, table)}`;
}

/** The rows, once for each group in which they have parts. */
function rowsByPart({ query, joined }: Plan): string {
  const keys = Object.entries(query.partKeys).map(([name, column]) => `p."${column}" AS "${name}"`);
  return `(SELECT DISTINCT ${list(['r.*'], keys)} FROM ${joined}) rows`;
}

/** The parts, with the keys of their rows, their own keys, and the columns to measure. */
function partsOf({ model, query, joined, rowKeys }: Plan): string {
  const { model: parts } = listRelation(model, query.parts);
  const column = (name: string) => columnOf(parts, name, 'p');
  const keys = Object.entries(query.partKeys).map(([name, key]) => `${column(key)} AS ${quoted(name)}`);
  const columns = columnsOf(query, 'parts').map(column);
  return `(SELECT ${list(
    rowKeys.map((key) => `r.${key}`),
    keys,
    columns,
  )} FROM ${joined}) parts`;
}

/** The measures of rows or of parts for each group, with nulls in place of the other measures. */
function measured(
  { model, query }: Plan,
  of: Measure['of'],
  source: string,
  keys: readonly string[],
): string {
  const { model: parts } = listRelation(model, query.parts);
  const figures = Object.entries(query.measures).map(
    ([name, measure]) =>
      `(${measure.of === of ? figureOf(of === 'rows' ? model : parts, measure) : 'NULL'})::float8 AS ${quoted(name)}`,
  );
  return `SELECT ${list(keys, figures)} FROM ${source}${keys.length > 0 ? ` GROUP BY ${list(keys)}` : ''}`;
}

function figureOf(model: ModelName, { does, column, is }: Measure): string {
  if (column === undefined) return 'count(*)';
  const value = quoted(column);
  if (is !== undefined) return `count(*) FILTER (WHERE ${value} = ${is})`;
  if (does === 'count' || does === 'sum') {
    // Extreme values are left out: their sum would overflow and fail the statement.
    const isFloat = fieldOf(model, column).type === 'Float';
    return `${does}(${value})${isFloat ? ` FILTER (WHERE abs(${value}) < 1e300)` : ''}`;
  }
  return `extract(epoch FROM ${does === 'first' ? 'min' : 'max'}(${value}) FILTER (WHERE ${isDated(value)})) * 1000`;
}

/** The aggregate that merges a measure of rows, parts and gaps. */
const merging = { count: 'sum', sum: 'sum', first: 'min', last: 'max' } as const;

const periodKey = '"period"';

const steps = { day: "interval '1 day'", week: "interval '7 days'", month: "interval '1 month'" } as const;

/** Whether a time has a date in every time zone, in PostgreSQL and in JavaScript. An infinite time has none. */
const isDated = (time: string) =>
  `${time} > timestamptz '4700-01-01Z BC' AND ${time} < timestamptz '270000-01-01Z'`;

/** The date that a period begins with, null outside of the years 1 to 9999: four digits are all that a date of the schema has. */
const periodOf = ({ unit }: Period, time: string, zone: string) =>
  `CASE WHEN ${time} >= timestamp '0001-01-01' AT TIME ZONE ${zone} AND ${time} < timestamp '10000-01-01' AT TIME ZONE ${zone}
    THEN date_trunc('${unit}', ${time} AT TIME ZONE ${zone})::date END`;

/**
 * Empty groups for all periods, combined with all values of the other keys. Times may lie far apart, so no more groups are
 * made than it takes to exceed the limit.
 */
function gapsOf(plan: Plan, period: Period, { from, to }: NonNullable<Period['fill']>): string {
  const { writer, query, zone, rowKeys, partKeys, measures } = plan;
  const others = [...rowKeys, ...partKeys].filter((key) => key !== periodKey);
  const bound = (time: Date | undefined, found: 'min' | 'max') =>
    // A time that is in no period bounds none.
    `coalesce(${list(time ? [periodOf(period, `${writer.parameter(time)}::timestamptz`, zone)] : [], [`${found}(${periodKey})`])})`;
  // `HAVING` makes this one row, even if neither bound is an aggregate.
  const ends = `SELECT (${bound(from, 'min')})::timestamp AS first, (${bound(to, 'max')})::timestamp AS last FROM by_row HAVING true`;
  const step = steps[period.unit];
  const most = `${writer.parameter(query.atMost)}::int`;
  // Without rows the last period may be unknown, and `least` would ignore the null.
  const end = `CASE WHEN last IS NOT NULL THEN least(last, first + ${most} * ${step}) END`;
  const each = `generate_series(first, ${end}, ${step}) date`;
  // A date does not exist where the clocks of a zone skipped a day.
  const exists =
    period.unit === 'day' ? ` WHERE (date AT TIME ZONE ${zone} AT TIME ZONE ${zone})::date = date` : '';
  const beside = others.length > 0 ? `, (SELECT DISTINCT ${list(others)} FROM by_row) others` : '';
  return `SELECT date::date AS ${periodKey}, ${list(
    others,
    measures.map((name) => `NULL::float8 AS ${name}`),
  )}
    FROM (${ends}) ends, ${each}${beside}${exists} LIMIT ${most} + 1`;
}

/** When a period begins, and when the next one does. */
function edgesOf({ unit }: Period, zone: string): string[] {
  const edge = (date: string) => `(${beginningOf(date, zone)})::float8`;
  return [
    `${edge(`${periodKey}::timestamp`)} AS "from"`,
    `${edge(`(${periodKey} + ${steps[unit]})`)} AS "to"`,
  ];
}

/**
 * The first instant of a date, in milliseconds. Where clocks are put back at midnight, there are two midnights: PostgreSQL
 * returns the later one, and the other is earlier by the difference to the clocks of the day before. Where clocks are put
 * forward at midnight, there is none: PostgreSQL returns the instant of the change.
 */
const beginningOf = (date: string, zone: string) => `
  SELECT extract(epoch FROM CASE WHEN (midnight - ahead) AT TIME ZONE ${zone} = day THEN midnight - ahead ELSE midnight END) * 1000
  FROM (SELECT day, midnight, ((midnight - interval '24 hours') AT TIME ZONE ${zone}) - (day - interval '1 day') AS ahead
        FROM (SELECT ${date} AS day, ${date} AT TIME ZONE ${zone} AS midnight) once) twice`;

const columnsOf = ({ measures }: GroupedQuery, of: Measure['of']): string[] => [
  ...new Set(Object.values(measures).flatMap((measure) => (measure.of === of ? (measure.column ?? []) : []))),
];

const quoted = (name: string) => `"${name}"`;
const list = (...parts: readonly (readonly string[])[]) => parts.flat().join(', ');
const together = (tables: readonly string[], ...columns: readonly (readonly string[])[]) =>
  tables.map((table) => `SELECT ${list(...columns)} FROM ${table}`).join(' UNION ALL ');
