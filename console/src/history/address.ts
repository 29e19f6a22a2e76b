/** What the history shows: a range of days, filters and a page. All of it is in the address, so that back, reload and links work. */

import type { DttSessionFilter } from '../../generated/graphql.ts';
import { databaseIdOf } from '../parts/address.ts';
import { base } from '../paths.ts';
import { addDays, type Day, type Period, parseDay, periods, startOf } from './calendar.ts';
import { type Between, presets, type Range } from './range.ts';

export const figureNames = ['points', 'grade', 'reps', 'duration', 'distance'] as const;
export type FigureName = (typeof figureNames)[number];

export const results = ['yes', 'no', 'unknown'] as const;

export interface HistoryAddress {
  readonly range: Range;
  /** Chosen by the user; otherwise it depends on the length of the range. */
  readonly by?: Period | undefined;
  readonly figure: FigureName;
  readonly trainer?: number | undefined;
  readonly program?: number | 'none' | undefined;
  readonly passed?: (typeof results)[number] | undefined;
  /** Cursors of the list of sessions: the page follows `after`, or precedes `before`. */
  readonly after?: string | undefined;
  readonly before?: string | undefined;
}

export const defaults: HistoryAddress = { range: 90, figure: 'points' };

/** Reads the parameters of an address. Values that cannot be right are left out. */
export function readAddress(query: Readonly<Record<string, string>>): HistoryAddress {
  const period = query.by?.toUpperCase();
  const after = readCursor(query.after);
  return {
    range: readRange(query),
    by: oneOf(periods, period),
    figure: oneOf(figureNames, query.figure) ?? defaults.figure,
    trainer: databaseIdOf(query.trainer),
    program: query.program === 'none' ? 'none' : databaseIdOf(query.program),
    passed: oneOf(results, query.passed),
    after,
    before: after === undefined ? readCursor(query.before) : undefined,
  };
}

function readRange({ last, from, to }: Readonly<Record<string, string>>): Range {
  const between = { from: parseDay(from), to: parseDay(to) };
  if (between.from !== undefined && between.to !== undefined && between.from > between.to)
    return { from: between.from, to: undefined };
  if (between.from !== undefined || between.to !== undefined) return between;
  return presets.find((preset) => String(preset) === last) ?? defaults.range;
}

const readCursor = (text: string | undefined): string | undefined =>
  text !== undefined && /^[\w+/=-]{1,2000}$/.test(text) ? text : undefined;

const oneOf = <Value extends string>(values: readonly Value[], text: string | undefined): Value | undefined =>
  values.find((value) => value === text);

/** The address at which the history shows this. */
export function hrefOf({
  range,
  by,
  figure,
  trainer,
  program,
  passed,
  after,
  before,
}: HistoryAddress): string {
  const parameters = {
    ...(typeof range === 'object' ? range : { last: range === defaults.range ? undefined : range }),
    by: by?.toLowerCase(),
    figure: figure === defaults.figure ? undefined : figure,
    trainer,
    program,
    passed,
    after,
    before,
  };
  const query = new URLSearchParams(
    Object.entries(parameters).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)]],
    ),
  );
  return query.size === 0 ? `${base}/history` : `${base}/history?${query}`;
}

/** The address with these changes. It leads to the first page of the list, since a cursor is valid for one list only. */
export const change = (address: HistoryAddress, changes: Partial<HistoryAddress>): HistoryAddress => ({
  ...address,
  after: undefined,
  before: undefined,
  ...changes,
});

/** The condition for sessions on these days, in the time zone of the browser, that the filters let through. */
export function filterOf(
  { from, to }: Between,
  { trainer, program, passed }: Pick<HistoryAddress, 'trainer' | 'program' | 'passed'>,
): DttSessionFilter {
  const createdAt = {
    ...(from !== undefined && { gte: startOf(from).toISOString() }),
    ...(to !== undefined && { lt: startOf(dayAfter(to)).toISOString() }),
  };
  return {
    ...((from ?? to) !== undefined && { createdAt }),
    ...(trainer !== undefined && { trainerId: { eq: trainer } }),
    ...(program !== undefined && { templateId: program === 'none' ? { isNull: true } : { eq: program } }),
    ...(passed !== undefined && {
      passed: passed === 'unknown' ? { isNull: true } : { eq: passed === 'yes' },
    }),
  };
}

const dayAfter = (day: Day): Day => addDays(day, 1);
