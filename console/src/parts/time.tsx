/** Times and durations as text, in the time zone of the browser. */

import { useEffect, useState } from 'preact/hooks';
import { language } from './language.ts';
import { numberText } from './number.ts';

/** The time zone of the browser, such as `Europe/Berlin`. */
export const timeZone = knownZone(Intl.DateTimeFormat().resolvedOptions());

/** A browser on a system without a time zone reports `Etc/Unknown`, which the gateway does not take for statistics. */
function knownZone({ timeZone }: Pick<Intl.ResolvedDateTimeFormatOptions, 'timeZone'>): string {
  return timeZone === 'Etc/Unknown' ? 'UTC' : timeZone;
}

const full = new Intl.DateTimeFormat(language, { dateStyle: 'full', timeStyle: 'long' });
const short = new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'short' });
const relative = new Intl.RelativeTimeFormat(language, { numeric: 'auto' });

/** In seconds, the largest first. */
const units = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const;

/** In days: a time that is further away is shown as a date. */
const maxRelativeDays = 30;

/** A time as date and hour. Its title has the weekday, the seconds and the time zone as well. */
export function Time({ at }: { at: string | null | undefined }) {
  return <TimeElement at={at} text={(time) => short.format(time)} />;
}

/** A time relative to now, such as `5 minutes ago`, which is updated while it is shown. */
export function TimeAgo({ at }: { at: string | null | undefined }) {
  const now = useNow(30_000);
  return <TimeElement at={at} text={(time) => relativeText(time.getTime() - now) ?? short.format(time)} />;
}

function TimeElement({ at, text }: { at: string | null | undefined; text(time: Date): string }) {
  const time = new Date(at ?? Number.NaN);
  if (Number.isNaN(time.getTime())) return <span>{at ?? 'never'}</span>;
  return (
    <time dateTime={time.toISOString()} title={full.format(time)}>
      {text(time)}
    </time>
  );
}

function relativeText(milliseconds: number): string | undefined {
  const seconds = milliseconds / 1_000;
  for (const [unit, length] of units) {
    const count = Math.trunc(seconds / length);
    if (unit === 'day' && Math.abs(count) > maxRelativeDays) return undefined;
    if (count !== 0) return relative.format(count, unit);
  }
  return 'just now';
}

/** The current time, updated at an interval. Both are in milliseconds. */
export function useNow(interval: number): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), interval);
    return () => clearInterval(timer);
  }, [interval]);
  return now;
}

/** Seconds as text in at most two units, such as `1 h 5 min`, `3 min 20 s` or `45 s`. */
export function duration(seconds: number): string {
  const whole = Math.round(seconds);
  const parts = [
    [Math.floor(whole / 86_400), 'd'],
    [Math.floor(whole / 3_600) % 24, 'h'],
    [Math.floor(whole / 60) % 60, 'min'],
    [whole % 60, 's'],
  ] as const;
  const first = parts.findIndex(([count]) => count > 0);
  if (first === -1) return '0\u00a0s';
  return parts
    .slice(first, first + 2)
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${numberText(count)}\u00a0${unit}`)
    .join(' ');
}
