/** What the segments of a training session come to together. */

interface Segment {
  readonly passed?: boolean | null | undefined;
  readonly points?: number | null | undefined;
  readonly gradePercent?: number | null | undefined;
}

/** What stands where nothing is known. */
const nothing = '–';

const percent = new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 1 });

export const passedCountOf = (segments: readonly Segment[]): number =>
  segments.filter(({ passed }) => passed === true).length;

/** How many were passed, and of how many that is not known, such as `2 of 4, 1 not known`. */
export function passedText(segments: readonly Segment[]): string {
  if (segments.length === 0) return nothing;
  const unknown = segments.filter(({ passed }) => passed == null).length;
  const text = `${passedCountOf(segments).toLocaleString()} of ${segments.length.toLocaleString()}`;
  return unknown === 0 ? text : `${text}, ${unknown.toLocaleString()} not known`;
}

/** The points of all; null where none has any. */
export const pointsOf = (segments: readonly Segment[]): number | null =>
  sumOf(segments.flatMap(({ points }) => points ?? []));

export const pointsText = (segments: readonly Segment[]): string =>
  pointsOf(segments)?.toLocaleString() ?? nothing;

/** The average of the grades that are known. */
export function gradeText(segments: readonly Segment[]): string {
  const grades = segments.flatMap(({ gradePercent }) => gradePercent ?? []);
  const sum = sumOf(grades);
  return sum === null ? nothing : percent.format(sum / grades.length / 100);
}

const sumOf = (numbers: readonly number[]): number | null =>
  numbers.length === 0 ? null : numbers.reduce((sum, number) => sum + number, 0);
