/** The figures that the chart can show beside the sessions, one at a time, and how numbers are written. */

import { duration } from '../parts/time.tsx';
import type { FigureName } from './address.ts';
import type { Group } from './queries.ts';

export interface Figure {
  readonly label: string;
  of(group: Group): number | null | undefined;
  format(value: number): string;
  /** How far the marks of its axis may be apart, where that is not a power of ten. */
  readonly steps?: number[];
  /** What its axis always reaches, at least. */
  readonly reaches?: number;
}

const decimal = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
const percent = new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 1 });

export const number = (value: number): string => decimal.format(value);
export const share = (part: number, whole: number): string => percent.format(part / whole);
export const asPercent = (value: number): string => percent.format(value / 100);
/** Metres, or kilometres where there are many. */
export const asDistance = (value: number): string =>
  value < 10_000 ? `${number(value)}\u00a0m` : `${number(value / 1_000)}\u00a0km`;

/** What stands where nothing was measured. */
export const nothing = '–';

/** A number as it is written, that there is none, or that it is not known yet. */
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
    reaches: 100,
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
