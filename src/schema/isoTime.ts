/** Times as responses have them. `toISOString` takes half as long again, and lists are full of times. */

const dayLength = 86_400_000;

/** How many days are remembered as they are written. */
const maxDays = 1_000;
const days = new Map<number, string>();

const digits = (count: number, width: number) =>
  Array.from({ length: count }, (_, number) => String(number).padStart(width, '0'));
const twoDigits = digits(60, 2);
const threeDigits = digits(1_000, 3);

/** The years that the format has (RFC 3339), without 0, which many a client's calendar does not have. */
const [earliest, latest] = [Date.parse('0001-01-01T00:00:00.000Z'), Date.parse('9999-12-31T23:59:59.999Z')];

/**
 * What `toISOString` gives. A time before or behind the years of the format, such as one that is infinite, of which there is
 * no `Date` but a number, is the nearest within: it hides no record, and none beside it.
 * @throws {RangeError} for a date that is none.
 */
export function isoTime(date: Date | number): string {
  const time = Math.min(Math.max(date.valueOf(), earliest), latest);
  const day = Math.floor(time / dayLength);
  const milliseconds = time - day * dayLength;
  const seconds = Math.floor(milliseconds / 1_000);
  const minutes = Math.floor(seconds / 60);
  const clock = `${twoDigits[Math.floor(minutes / 60)]}:${twoDigits[minutes % 60]}:${twoDigits[seconds % 60]}`;
  return `${days.get(day) ?? written(day)}${clock}.${threeDigits[milliseconds % 1_000]}Z`;
}

/** A day, and the T behind it. */
function written(day: number): string {
  const text = new Date(day * dayLength).toISOString().slice(0, -'00:00:00.000Z'.length);
  if (days.size >= maxDays) days.clear();
  days.set(day, text);
  return text;
}
