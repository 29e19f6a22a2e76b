/** Periods as people say them. Their dates are days of the calendar, which no time zone moves: so they are written in UTC. */

import { language } from '../parts/language.ts';
import { addDays, type Day, type Period } from './calendar.ts';

/** A format that is made when it is first needed, for which a slow telephone takes its time. */
function lazily(options: Intl.DateTimeFormatOptions) {
  let made: Intl.DateTimeFormat | undefined;
  return () => (made ??= new Intl.DateTimeFormat(language, options));
}

const format = (options: Intl.DateTimeFormatOptions) => lazily({ ...options, timeZone: 'UTC' });

const day = format({ dateStyle: 'medium' });
const weekday = format({ weekday: 'short', day: 'numeric', month: 'short', year: 'numeric' });
const month = format({ month: 'long', year: 'numeric' });
const dayOfYear = format({ day: 'numeric', month: 'short' });
const monthOfYear = format({ month: 'short' });
const year = format({ year: 'numeric' });

const timeOf = (date: Day): Date => new Date(`${date}T00:00Z`);

/** For example `Feb 17, 2026`. */
export const dayName = (date: Day): string => day().format(timeOf(date));

/** For example `Tue, Feb 17, 2026`, `Feb 16 – 22, 2026` or `February 2026`. */
export function periodName(date: Day, period: Period): string {
  if (period === 'MONTH') return month().format(timeOf(date));
  return period === 'DAY'
    ? weekday().format(timeOf(date))
    : day().formatRange(timeOf(date), timeOf(addDays(date, 6)));
}

/** As it stands below the chart, with the year where it is another than that of the mark before. */
export function markName(date: Day, period: Period, before: Day | undefined): string {
  const name = (period === 'MONTH' ? monthOfYear : dayOfYear)().format(timeOf(date));
  return before?.slice(0, 4) === date.slice(0, 4) ? name : `${name}\n${year().format(timeOf(date))}`;
}

const dayAndHour = lazily({ dateStyle: 'medium', timeStyle: 'short' });

/** An instant by the clocks of the browser; what is none as it is. */
export function timeName(instant: string): string {
  const time = new Date(instant);
  return Number.isNaN(time.getTime()) ? instant : dayAndHour().format(time);
}

/** The days between which something is shown. */
export function rangeName(from: Day | undefined, to: Day | undefined): string {
  if (from !== undefined && to !== undefined) return day().formatRange(timeOf(from), timeOf(to));
  if (from !== undefined) return `Since ${dayName(from)}`;
  return to === undefined ? 'All there is' : `Until ${dayName(to)}`;
}
