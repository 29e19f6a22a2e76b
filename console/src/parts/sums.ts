/** Sums over training sessions, and over the segments of a session. */

import { numberText } from './number.ts';

interface Segment {
  readonly passed?: boolean | null | undefined;
  readonly points?: number | null | undefined;
  readonly gradePercent?: number | null | undefined;
}

/** The text in place of an unknown value. */
const nothing = '–';

const percent = new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 1 });

interface Counts {
  readonly sessionCount: number;
  readonly passedSessionCount: number;
  readonly failedSessionCount: number;
}

/** How many sessions have no known result. */
export const unknownCountOf = ({ sessionCount, passedSessionCount, failedSessionCount }: Counts): number =>
  sessionCount - passedSessionCount - failedSessionCount;

export const passedCountOf = (segments: readonly Segment[]): number =>
  segments.filter(({ passed }) => passed === true).length;

/** How many of the segments with a result were passed, such as `2 of 3`; if some have none, `2 of 3 scored`. */
export function passedText(segments: readonly Segment[]): string {
  const known = segments.filter(({ passed }) => passed != null).length;
  if (known === 0) return nothing;
  const counts = `${numberText(passedCountOf(segments))} of ${numberText(known)}`;
  return known < segments.length ? `${counts} scored` : counts;
}

/** The points of all segments; null if no segment has any. */
export const pointsOf = (segments: readonly Segment[]): number | null =>
  sumOf(segments, ({ points }) => points);

export function pointsText(segments: readonly Segment[]): string {
  const points = pointsOf(segments);
  return points === null ? nothing : numberText(points);
}

/** The average of the known grades; null if none is known. */
export function averageGradeOf(segments: readonly Segment[]): number | null {
  const sum = sumOf(segments, ({ gradePercent }) => gradePercent);
  const count = segments.filter(({ gradePercent }) => gradePercent != null).length;
  return sum === null ? null : sum / count;
}

export function gradeText(segments: readonly Segment[]): string {
  const average = averageGradeOf(segments);
  return average === null ? nothing : percent.format(average / 100);
}

/** The sum of the known values; null if none is known. */
export function sumOf<Part>(
  parts: readonly Part[],
  valueIn: (part: Part) => number | null | undefined,
): number | null {
  const values = parts.flatMap((part) => valueIn(part) ?? []);
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0);
}
