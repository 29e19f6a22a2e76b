/** What the history shows, as it stands in the address: so that going back, loading again and links work. */

import type { DttSessionFilter } from '../../generated/graphql.ts';
import { databaseIdOf } from '../parts/address.ts';
import { addDays, type Day, type Period, parseDay, periods, startOf } from './calendar.ts';
import { type Between, presets, type Range } from './range.ts';

export const figureNames = ['points', 'grade', 'reps', 'duration', 'distance'] as const;
export type FigureName = (typeof figureNames)[number];

export const results = ['yes', 'no', 'unknown'] as const;

export interface HistoryAddress {
  readonly range: Range;
  /** Chosen by hand; without it the range chooses. */
  readonly by?: Period | undefined;
  readonly figure: FigureName;
  readonly trainer?: number | undefined;
  readonly program?: number | 'none' | undefined;
  readonly passed?: (typeof results)[number] | undefined;
  /** Cursors of the list: what is behind the one, or before the other. */
  readonly after?: string | undefined;
  readonly before?: string | undefined;
}

export const defaults: HistoryAddress = { range: 90, figure: 'points' };

/** What an address says; what cannot be meant is left out of it. */
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

/** Where the history shows this. */
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
  const said = {
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
    Object.entries(said).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  );
  return query.size === 0 ? '/console/history' : `/console/history?${query}`;
}

/** The same with some of it changed. The list begins anew, since its cursors belong to what was shown before. */
export const change = (address: HistoryAddress, changes: Partial<HistoryAddress>): HistoryAddress => ({
  ...address,
  after: undefined,
  before: undefined,
  ...changes,
});

/** The condition for sessions between these days, by the clocks of the browser, and as the filters say. */
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
