/** Times as responses have them. `toISOString` takes half as long again, and lists are full of times. */

const dayLength = 86_400_000;

/** How many days are remembered as they are written. */
const maxDays = 1_000;
const days = new Map<number, string>();

const digits = (count: number, width: number) =>
  Array.from({ length: count }, (_, number) => String(number).padStart(width, '0'));
const twoDigits = digits(60, 2);
const threeDigits = digits(1_000, 3);

/**
 * What `toISOString` gives.
 * @throws {RangeError} for a date that is none.
 */
export function isoTime(date: Date): string {
  const time = date.getTime();
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
