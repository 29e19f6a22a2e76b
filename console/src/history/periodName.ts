/** Periods as text. Their dates are calendar days, which no time zone may shift, so they are handled and written in UTC. */

import { language } from '../parts/language.ts';
import { addDays, type Day, type Period } from './calendar.ts';

/** Creates a format when it is first needed: creating one takes noticeable time on a slow phone. */
function lazily(options: Intl.DateTimeFormatOptions) {
  let created: Intl.DateTimeFormat | undefined;
  return () => (created ??= new Intl.DateTimeFormat(language, options));
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

/** The label of a period on the x axis. The year is added if it differs from that of the previous label. */
export function axisLabel(date: Day, period: Period, previous: Day | undefined): string {
  const name = (period === 'MONTH' ? monthOfYear : dayOfYear)().format(timeOf(date));
  return previous?.slice(0, 4) === date.slice(0, 4) ? name : `${name}\n${year().format(timeOf(date))}`;
}

const dayAndHour = lazily({ dateStyle: 'medium', timeStyle: 'short' });

/** An instant in the time zone of the browser. A text that is no instant is returned as it is. */
export function timeName(instant: string): string {
  const time = new Date(instant);
  return Number.isNaN(time.getTime()) ? instant : dayAndHour().format(time);
}

/** A range of days, of which either end may be open. */
export function rangeName(from: Day | undefined, to: Day | undefined): string {
  if (from !== undefined && to !== undefined) return day().formatRange(timeOf(from), timeOf(to));
  if (from !== undefined) return `Since ${dayName(from)}`;
  return to === undefined ? 'All there is' : `Until ${dayName(to)}`;
}
