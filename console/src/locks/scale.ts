/** The marks of a time scale, in the time zone of the browser. */

const minute = 60_000;
const day = 86_400_000;

/** The possible distances between two marks, in minutes. Marks that are further apart are whole days apart. */
const steps = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720];

/**
 * Up to `maxMarks` marks at round times of day, in milliseconds since 1970. They stay round on a day on which the clocks change:
 * the distance between two of them differs there.
 */
export function marksBetween(from: number, to: number, maxMarks: number): number[] {
  if (maxMarks < 1) return [];
  const minDistance = (to - from) / maxMarks;
  const minutes = steps.find((step) => step * minute >= minDistance);
  const days = minutes === undefined ? Math.ceil(minDistance / day) : 0;
  const start = new Date(from);
  const marks: number[] = [];
  for (let count = 0; ; count++) {
    const mark = new Date(
      start.getFullYear(),
      start.getMonth(),
      start.getDate() + count * days,
      0,
      count * (minutes ?? 0),
    ).getTime();
    // A mark beyond the range of dates is NaN, for which `mark <= to` is false.
    if (!(mark <= to)) return marks;
    if (mark >= from && mark !== marks.at(-1)) marks.push(mark);
  }
}
