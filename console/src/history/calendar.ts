/** Calendar days, such as `2026-02-17`, and the instants at which they begin in the time zone of the browser. */

/** In the form `2026-02-17`, in which days compare as strings. */
export type Day = string;

export const periods = ['DAY', 'WEEK', 'MONTH'] as const;
export type Period = (typeof periods)[number];

/** The years that an address may have: more than there are sessions of, and all of them valid in every browser and in the API. */
const [firstYear, lastYear] = [1900, 2999];

/** In milliseconds, in UTC, where all days are equally long. */
const dayInUtc = 86_400_000;

/** The day that a text stands for; undefined if there is no such day. */
export function parseDay(text: string | undefined): Day | undefined {
  if (text === undefined || !/^\d{4}-\d{2}-\d{2}$/.test(text)) return undefined;
  const time = new Date(`${text}T00:00Z`);
  if (Number.isNaN(time.getTime()) || inUtc(time) !== text) return undefined;
  const year = time.getUTCFullYear();
  return year < firstYear || year > lastYear ? undefined : text;
}

/** The day of an instant in the time zone of the browser; undefined for an infinite instant. */
export function dayOf(time: Date): Day | undefined {
  if (Number.isNaN(time.getTime())) return undefined;
  const [year, month, day] = [time.getFullYear(), time.getMonth() + 1, time.getDate()];
  return parseDay([String(year).padStart(4, '0'), twoDigits(month), twoDigits(day)].join('-'));
}

/**
 * The instant at which a day begins in the time zone of the browser. If the clocks skip midnight on that day, it begins at the
 * first time after it; if midnight comes twice, at the first.
 */
export function startOf(day: Day): Date {
  const [year = 0, month = 0, date = 0] = day.split('-').map(Number);
  return new Date(year, month - 1, date);
}

/** The day that comes this many days later. */
export const addDays = (day: Day, count: number): Day =>
  inUtc(new Date(Date.parse(`${day}T00:00Z`) + count * dayInUtc));

/** How many days there are from one to another, counting both. */
export const countDays = (from: Day, to: Day): number =>
  Math.round((Date.parse(`${to}T00:00Z`) - Date.parse(`${from}T00:00Z`)) / dayInUtc) + 1;

/** The last day of the period that begins on a day. */
export function lastDayOf(first: Day, period: Period): Day {
  if (period === 'DAY') return first;
  if (period === 'WEEK') return addDays(first, 6);
  const [year = 0, month = 0] = first.split('-').map(Number);
  // Day 0 of the next month is the last day of this one.
  return inUtc(new Date(Date.UTC(year, month, 0)));
}

const inUtc = (time: Date): Day => time.toISOString().slice(0, 10);

const twoDigits = (count: number): string => String(count).padStart(2, '0');
