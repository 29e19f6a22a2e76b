/** The range of days that the history shows, and the length of the periods that it is divided into. */

import { addDays, countDays, type Day, dayOf, type Period } from './calendar.ts';

/** The number of days until today, everything, or the days between two, of which one may be open. */
export type Range = Preset | Between;
export type Preset = (typeof presets)[number];

export interface Between {
  readonly from: Day | undefined;
  readonly to: Day | undefined;
}

export const presets = [30, 90, 365, 'all'] as const;

/** The first and the last day of a range. */
export function daysOf(range: Range, today: Day): Between {
  if (range === 'all') return { from: undefined, to: undefined };
  return typeof range === 'number' ? { from: addDays(today, 1 - range), to: today } : range;
}

/** The times of the first and the last of all sessions. */
export interface Extent {
  readonly firstSessionAt?: string | null;
  readonly lastSessionAt?: string | null;
}

/** The number of days in a range. An open end is that of the first or last session; undefined if that is unknown. */
export function lengthOf(
  { from, to }: Between,
  { firstSessionAt, lastSessionAt }: Extent,
): number | undefined {
  const [first, last] = [from ?? dayAt(firstSessionAt), to ?? dayAt(lastSessionAt)];
  if (first === undefined || last === undefined) return undefined;
  return first === beyond || last === beyond ? Number.POSITIVE_INFINITY : Math.max(countDays(first, last), 1);
}

/** Stands for the day of an infinite time. */
const beyond = 'beyond';

const dayAt = (time: string | null | undefined): Day | undefined =>
  time == null ? undefined : (dayOf(new Date(time)) ?? beyond);

/** The most periods of a chart that has a bar for each. */
const maxGroups = 366;

/** In days: ranges up to this have at most `maxGroups` months, one of which may begin before and end after the range. */
const maxFilledDays = (maxGroups - 1) * 30;

/** Whether periods without sessions are shown too. They are not for a range of centuries, as a device with a wrong clock makes it. */
export const isFilled = (days: number): boolean => days <= maxFilledDays;

/** Whether a chart of this many days can be by these periods. A range may begin and end within a week, which makes one week more. */
export function isPossible(period: Period, days: number): boolean {
  if (period === 'MONTH') return true;
  return period === 'DAY' ? days <= maxGroups : days <= (maxGroups - 1) * 7;
}

/** The period that the user has chosen, if it is possible; otherwise one that suits the number of days. */
export function choosePeriod(days: number, chosen: Period | undefined): Period {
  if (chosen !== undefined && isPossible(chosen, days)) return chosen;
  if (days <= 45) return 'DAY';
  return days <= 400 ? 'WEEK' : 'MONTH';
}
