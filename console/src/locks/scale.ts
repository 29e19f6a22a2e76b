/** A scale of time by the clocks of the browser. */

const minute = 60_000;
const day = 86_400_000;

/** How far apart marks may be, in minutes of a clock; beyond that they are whole days apart. */
const steps = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720];

/**
 * Times at which clocks show something round, in milliseconds since 1970, at most so many.
 * On a day on which clocks are changed the distance from one to the next is another, and the round time stays.
 */
export function marksBetween(from: number, to: number, most: number): number[] {
  if (most < 1) return [];
  const least = (to - from) / most;
  const minutes = steps.find((step) => step * minute >= least);
  const days = minutes === undefined ? Math.ceil(least / day) : 0;
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
    // An end that no date can be is passed by none.
    if (!(mark <= to)) return marks;
    if (mark >= from && mark !== marks.at(-1)) marks.push(mark);
  }
}
