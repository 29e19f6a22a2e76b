/** The figures of which the chart shows one beside the sessions, and the formats of numbers. */

import { duration } from '../parts/time.tsx';
import type { FigureName } from './address.ts';
import type { Group } from './queries.ts';

export interface Figure {
  readonly label: string;
  of(group: Group): number | null | undefined;
  format(value: number): string;
  /** The possible distances between two labels of its axis, if they are not powers of ten and their multiples. */
  readonly steps?: number[];
  /** The value up to which its axis goes at least. */
  readonly minTop?: number;
}

const decimal = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
const percent = new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 1 });

export const number = (value: number): string => decimal.format(value);
export const share = (part: number, whole: number): string => percent.format(part / whole);
export const asPercent = (value: number): string => percent.format(value / 100);
/** Writes metres, as kilometres from 10,000 metres. */
export const asDistance = (value: number): string =>
  value < 10_000 ? `${number(value)}\u00a0m` : `${number(value / 1_000)}\u00a0km`;

/** The text in place of a value that was not measured. */
export const nothing = '–';

/** Writes a value: `–` if it was not measured (null), `…` while it is not loaded (undefined). */
export function orNothing(value: number | null | undefined, format: (value: number) => string): string {
  if (value === undefined) return '…';
  return value === null ? nothing : format(value);
}

export const figures: Readonly<Record<FigureName, Figure>> = {
  points: { label: 'Points', of: ({ totalPoints }) => totalPoints, format: number },
  grade: {
    label: 'Average grade',
    of: ({ averageGradePercent }) => averageGradePercent,
    format: asPercent,
    minTop: 100,
  },
  reps: { label: 'Repetitions', of: ({ totalRepsMeasured }) => totalRepsMeasured, format: number },
  duration: {
    label: 'Duration',
    of: ({ totalDurationMeasuredSeconds }) => totalDurationMeasuredSeconds,
    format: duration,
    steps: [
      1, 5, 15, 30, 60, 300, 900, 1_800, 3_600, 7_200, 14_400, 43_200, 86_400, 172_800, 432_000, 864_000,
    ],
  },
  distance: {
    label: 'Distance',
    of: ({ totalDistanceTravelledMetres }) => totalDistanceTravelledMetres,
    format: asDistance,
  },
};
