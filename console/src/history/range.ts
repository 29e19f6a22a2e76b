/** From which day to which, and in which periods. */

import { addDays, countDays, type Day, dayOf, type Period } from './calendar.ts';

/** So many days until today, all there is, or between two days, of which one may be open. */
export type Range = Preset | Between;
export type Preset = (typeof presets)[number];

export interface Between {
  readonly from: Day | undefined;
  readonly to: Day | undefined;
}

export const presets = [30, 90, 365, 'all'] as const;

/** The days between which sessions are shown, both counted. */
export function daysOf(range: Range, today: Day): Between {
  if (range === 'all') return { from: undefined, to: undefined };
  return typeof range === 'number' ? { from: addDays(today, 1 - range), to: today } : range;
}

/** When the first and the last of all sessions took place. */
export interface Extent {
  readonly firstSessionAt?: string | null;
  readonly lastSessionAt?: string | null;
}

/** How many days there are to show, where an open side ends with the first or the last session; none if that is not known. */
export function lengthOf(
  { from, to }: Between,
  { firstSessionAt, lastSessionAt }: Extent,
): number | undefined {
  const [first, last] = [from ?? dayAt(firstSessionAt), to ?? dayAt(lastSessionAt)];
  if (first === undefined || last === undefined) return undefined;
  return first === beyond || last === beyond ? Number.POSITIVE_INFINITY : Math.max(countDays(first, last), 1);
}

/** What no calendar has, such as a time that is infinite. */
const beyond = 'beyond';

const dayAt = (time: string | null | undefined): Day | undefined =>
  time == null ? undefined : (dayOf(new Date(time)) ?? beyond);

/** How many periods there are at most in a chart that has all of them. */
const mostGroups = 366;

/** In days: a month more begins and ends outside. */
const mostMonths = (mostGroups - 1) * 30;

/** Whether the periods without sessions are shown as well: not where a clock was wrong, and there are centuries of them. */
export const isFilled = (days: number): boolean => days <= mostMonths;

/** Whether so many days are few enough for a chart by these periods. A week or a month more begins and ends outside. */
export function isPossible(period: Period, days: number): boolean {
  if (period === 'MONTH') return true;
  return period === 'DAY' ? days <= mostGroups : days <= (mostGroups - 1) * 7;
}

/** By day, week or month, as was chosen by hand if that is possible, or else by how many days there are. */
export function choosePeriod(days: number, chosen: Period | undefined): Period {
  if (chosen !== undefined && isPossible(chosen, days)) return chosen;
  if (days <= 45) return 'DAY';
  return days <= 400 ? 'WEEK' : 'MONTH';
}
