/** Formats times for responses. `toISOString` takes half as long again, and lists have many times. */

const dayLength = 86_400_000;

/** The cache of formatted days holds at most this many. When it is full, it is cleared. */
const maxDays = 1_000;
const days = new Map<number, string>();

const digits = (count: number, width: number) =>
  Array.from({ length: count }, (_, number) => String(number).padStart(width, '0'));
const twoDigits = digits(60, 2);
const threeDigits = digits(1_000, 3);

/** The years of the format (RFC 3339), without the year 0, which the calendars of many clients do not have. */
const [earliest, latest] = [Date.parse('0001-01-01T00:00:00.000Z'), Date.parse('9999-12-31T23:59:59.999Z')];

/**
 * Formats a time as `toISOString` does. A time outside of the years of the format is clamped to the nearest time within, so that
 * the record can be shown. A time that a `Date` cannot represent is a number, such as an infinite one.
 * @throws {RangeError} for an invalid date.
 */
export function isoTime(date: Date | number): string {
  const time = Math.min(Math.max(date.valueOf(), earliest), latest);
  const day = Math.floor(time / dayLength);
  const milliseconds = time - day * dayLength;
  const seconds = Math.floor(milliseconds / 1_000);
  const minutes = Math.floor(seconds / 60);
  const clock = `${twoDigits[Math.floor(minutes / 60)]}:${twoDigits[minutes % 60]}:${twoDigits[seconds % 60]}`;
  return `${days.get(day) ?? formatDay(day)}${clock}.${threeDigits[milliseconds % 1_000]}Z`;
}

/** A day with the T that follows it. */
function formatDay(day: number): string {
  const text = new Date(day * dayLength).toISOString().slice(0, -'00:00:00.000Z'.length);
  if (days.size >= maxDays) days.clear();
  days.set(day, text);
  return text;
}
