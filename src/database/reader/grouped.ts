/**
 * Rows counted and added up in groups, in one statement: of the rows themselves, and of the parts that they consist of.
 *
 * Each of the two is grouped by itself, so that a row counts once however many parts it has; what comes of it is put
 * together by the keys of the groups.
 */

import pg from 'pg';
import { conditionOn, createWriter, joinOn, type Writer } from './condition.ts';
import { columnOf, fieldOf, listOf } from './models.ts';
import type { Model } from './query.ts';
import type { Statement } from './statement.ts';

/** What is found out about each group. A time is in milliseconds since the epoch. */
export interface Measure {
  readonly of: 'rows' | 'parts';
  readonly does: 'count' | 'sum' | 'first' | 'last';
  /** Whose values are looked at; without one, everything is counted. */
  readonly column?: string;
  /** Counts only where the column is so. */
  readonly is?: boolean;
}

/** Days, weeks from Monday, or months, by the clocks of a time zone. */
export interface Period {
  /** The time of a row. */
  readonly column: string;
  readonly unit: 'day' | 'week' | 'month';
  readonly timeZone: string;
  /** Whether periods without rows are groups too: from the first row to the last, or between these times. */
  readonly fill: { readonly from: Date | undefined; readonly to: Date | undefined } | undefined;
}

export interface GroupedQuery {
  readonly where: object;
  /** The relation that leads to the parts. */
  readonly parts: string;
  readonly measures: Readonly<Record<string, Measure>>;
  readonly period: Period | undefined;
  /** Keys by their names: columns, of which the first that is not null counts. */
  readonly keys: Readonly<Record<string, readonly string[]>>;
  /** Keys that are columns of the parts: a row counts in each group that it has parts in. */
  readonly partKeys: Readonly<Record<string, string>>;
  /** One group more is read, to know whether there are more. */
  readonly atMost: number;
}

/**
 * A row as the statement gives it: the first is of everything together, and the groups follow in the order of their keys.
 * Beside these it has the keys and the measures, by their names.
 */
export interface GroupedRow extends Readonly<Record<string, unknown>> {
  readonly isTotal: boolean;
  /** The date that the period begins with, in days since 1970; null for rows whose time is in no period. */
  readonly period?: number | null;
  /** When the period begins, and when the next one does. */
  readonly from?: number | null;
  readonly to?: number | null;
}

/** Whether a statement failed because the database does not know the time zone (`invalid_parameter_value`). */
export const isUnknownTimeZone = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && error.code === '22023';

/** What all parts of one statement share. */
interface Plan {
  readonly writer: Writer;
  readonly model: Model;
  readonly query: GroupedQuery;
  /** Where rows and their parts are read together: `r` and `p`. */
  readonly joined: string;
  /** Those of the rows, the period before the others, and then those of the parts. */
  readonly rowKeys: readonly string[];
  readonly partKeys: readonly string[];
  readonly measures: readonly string[];
  /** The parameter for the time zone. */
  readonly zone: string;
}

/** @throws an error for a query that is beyond this module. */
export function groupedStatement(model: Model, query: GroupedQuery): Statement {
  const values: unknown[] = [];
  const plan = planOf(createWriter(values), model, query);
  const { rowKeys, partKeys, measures } = plan;
  const keys = [...rowKeys, ...partKeys];
  const hasParts = Object.values(query.measures).some(({ of }) => of === 'parts');
  const withs = [
    `counted AS MATERIALIZED (${countedRows(plan)})`,
    `by_row AS (${measured(plan, 'rows', partKeys.length > 0 ? rowsByPart(plan) : 'counted', keys)})`,
    ...(hasParts ? [`by_part AS (${measured(plan, 'parts', partsOf(plan), keys)})`] : []),
    // A row is in several groups of parts, and counts once in all.
    `all_rows AS (${partKeys.length > 0 ? measured(plan, 'rows', 'counted', []) : 'TABLE by_row'})`,
    ...(query.period?.fill ? [`gaps AS (${gapsOf(plan, query.period, query.period.fill)})`] : []),
  ];
  const ofParts = hasParts ? ['by_part'] : [];
  const ofGroups = ['by_row', ...ofParts, ...(query.period?.fill ? ['gaps'] : [])];
  const merged = Object.entries(query.measures).map(
    ([name, { does }]) => `${merging[does]}("${name}") AS "${name}"`,
  );
  const groups = `SELECT false AS "isTotal", ${list(keys, merged)} FROM (${together(ofGroups, keys, measures)}) found GROUP BY ${list(keys)}`;
  const total = `SELECT true AS "isTotal", ${list(keys.map(asNull), merged)} FROM (${together(['all_rows', ...ofParts], measures)}) found`;
  const text = `WITH ${list(withs)}
    SELECT "isTotal", ${list(keys.map(shown), measures, query.period ? edgesOf(query.period, plan.zone) : [])}
    FROM (${keys.length === 0 ? total : `${groups} UNION ALL ${total}`}) found
    ORDER BY ${list(
      ['"isTotal" DESC'],
      keys.map((key) => inOrder(plan, key)),
    )} LIMIT ${plan.writer.parameter(query.atMost)}::int + 2`;
  return { text, values };
}

function planOf(writer: Writer, model: Model, query: GroupedQuery): Plan {
  const relation = listOf(model, query.parts);
  return {
    writer,
    model,
    query,
    joined: `counted r JOIN "${relation.model}" p ON ${joinOn(relation, 'p', 'r')}`,
    rowKeys: [...(query.period ? [periodKey] : []), ...Object.keys(query.keys).map(quoted)],
    partKeys: Object.keys(query.partKeys).map(quoted),
    measures: Object.keys(query.measures).map(quoted),
    zone: query.period ? `${writer.parameter(query.period.timeZone)}::text` : '',
  };
}

/**
 * The rows, with their keys and what is measured of them. Read by itself, so that PostgreSQL takes the groups to be few:
 * of so many times it would expect as many days, and sort the rows.
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

/** The rows, once for each group of the parts that they have. */
function rowsByPart({ query, joined }: Plan): string {
  const keys = Object.entries(query.partKeys).map(([name, column]) => `p."${column}" AS "${name}"`);
  return `(SELECT DISTINCT ${list(['r.*'], keys)} FROM ${joined}) rows`;
}

/** The parts, with the keys of their rows and their own, and what is measured of them. */
function partsOf({ model, query, joined, rowKeys }: Plan): string {
  const { model: parts } = listOf(model, query.parts);
  const column = (name: string) => columnOf(parts, name, 'p');
  const keys = Object.entries(query.partKeys).map(([name, key]) => `${column(key)} AS ${quoted(name)}`);
  const columns = columnsOf(query, 'parts').map(column);
  return `(SELECT ${list(
    rowKeys.map((key) => `r.${key}`),
    keys,
    columns,
    ['p.id'],
  )} FROM ${joined}) parts`;
}

/** What is measured of the one or the other, for each group, with nulls in place of the rest. */
function measured(
  { model, query }: Plan,
  of: Measure['of'],
  source: string,
  keys: readonly string[],
): string {
  const { model: parts } = listOf(model, query.parts);
  const figures = Object.entries(query.measures).map(
    ([name, measure]) =>
      `(${measure.of === of ? figureOf(of === 'rows' ? model : parts, measure) : 'NULL'})::float8 AS ${quoted(name)}`,
  );
  return `SELECT ${list(keys, figures)} FROM ${source}${keys.length > 0 ? ` GROUP BY ${list(keys)}` : ''}`;
}

function figureOf(model: Model, { does, column, is }: Measure): string {
  if (column === undefined) return 'count(*)';
  const value = quoted(column);
  if (is !== undefined) return `count(*) FILTER (WHERE ${value} = ${is})`;
  if (does === 'count' || does === 'sum') {
    // What is too large by any measure is left out: added up, it would end the statement.
    const isFloat = fieldOf(model, column).type === 'Float';
    return `${does}(${value})${isFloat ? ` FILTER (WHERE abs(${value}) < 1e300)` : ''}`;
  }
  return `extract(epoch FROM ${does === 'first' ? 'min' : 'max'}(${value}) FILTER (WHERE ${isDated(value)})) * 1000`;
}

/** How what was measured of rows, parts and gaps comes together. */
const merging = { count: 'sum', sum: 'sum', first: 'min', last: 'max' } as const;

const periodKey = '"period"';

const steps = { day: "interval '1 day'", week: "interval '7 days'", month: "interval '1 month'" } as const;

/** Times that have a date in every time zone, to PostgreSQL and to JavaScript: none that is infinite, for one. */
const isDated = (time: string) =>
  `${time} > timestamptz '4700-01-01Z BC' AND ${time} < timestamptz '270000-01-01Z'`;

/** The date that a period begins with, null outside of the years 1 to 9999: four digits are all that a date of the schema has. */
const periodOf = ({ unit }: Period, time: string, zone: string) =>
  `CASE WHEN ${time} >= timestamp '0001-01-01' AT TIME ZONE ${zone} AND ${time} < timestamp '10000-01-01' AT TIME ZONE ${zone}
    THEN date_trunc('${unit}', ${time} AT TIME ZONE ${zone})::date END`;

/**
 * Groups for all periods in which nothing may be, beside each of the other keys that occur: no more than it takes to know
 * that they are too many, since times may lie far apart.
 */
function gapsOf(plan: Plan, period: Period, { from, to }: NonNullable<Period['fill']>): string {
  const { writer, query, zone, rowKeys, partKeys, measures } = plan;
  const others = [...rowKeys, ...partKeys].filter((key) => key !== periodKey);
  const bound = (time: Date | undefined, found: 'min' | 'max') =>
    // A time that is in no period bounds none.
    `coalesce(${list(time ? [periodOf(period, `${writer.parameter(time)}::timestamptz`, zone)] : [], [`${found}(${periodKey})`])})`;
  // `HAVING` makes one row of them, also where neither is looked for.
  const ends = `SELECT (${bound(from, 'min')})::timestamp AS first, (${bound(to, 'max')})::timestamp AS last FROM by_row HAVING true`;
  const step = steps[period.unit];
  const most = `${writer.parameter(query.atMost)}::int`;
  // Without rows there may be one end alone, which `least` would take for both.
  const end = `CASE WHEN last IS NOT NULL THEN least(last, first + ${most} * ${step}) END`;
  const each = `generate_series(first, ${end}, ${step}) date`;
  // Where clocks were put forward by a day, a date is left out.
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
 * The first instant of a date, in milliseconds. There may be two midnights, where clocks are put back: PostgreSQL gives the
 * later, and the other is as much earlier as the clocks are ahead a day before. There may be none, where they are put
 * forward: PostgreSQL gives the instant at which they are.
 */
const beginningOf = (date: string, zone: string) => `
  SELECT extract(epoch FROM CASE WHEN (midnight - ahead) AT TIME ZONE ${zone} = day THEN midnight - ahead ELSE midnight END) * 1000
  FROM (SELECT day, midnight, ((midnight - interval '24 hours') AT TIME ZONE ${zone}) - (day - interval '1 day') AS ahead
        FROM (SELECT ${date} AS day, ${date} AT TIME ZONE ${zone} AS midnight) once) twice`;

const columnsOf = ({ measures }: GroupedQuery, of: Measure['of']): string[] => [
  ...new Set(Object.values(measures).flatMap((measure) => (measure.of === of ? (measure.column ?? []) : []))),
];

const quoted = (name: string) => `"${name}"`;
const asNull = (name: string) => `NULL AS ${name}`;
const shown = (key: string) => (key === periodKey ? `${key} - date '1970-01-01' AS ${key}` : key);
const list = (...parts: readonly (readonly string[])[]) => parts.flat().join(', ');
const together = (tables: readonly string[], ...columns: readonly (readonly string[])[]) =>
  tables.map((table) => `SELECT ${list(...columns)} FROM ${table}`).join(' UNION ALL ');

/** Text is ordered alike whatever the database's language is. */
function inOrder({ model, query }: Plan, key: string): string {
  const name = key.slice(1, -1);
  const { model: parts } = listOf(model, query.parts);
  const columns = [
    ...(query.keys[name] ?? []).map((column) => fieldOf(model, column)),
    ...(query.partKeys[name] === undefined ? [] : [fieldOf(parts, query.partKeys[name])]),
  ];
  return columns.some(({ type }) => type === 'String') ? `${key} COLLATE "C"` : key;
}
