/** How the chart is drawn. Its places are the numbers of the periods, not times: each period is as wide as any other. */

import uPlot from 'uplot';
import type { Day, Period } from './calendar.ts';
import { type Figure, number } from './figures.ts';
import { dotted, hatched } from './fills.ts';
import { markName } from './periodName.ts';

type Colour = () => string;
export type Colours = Readonly<
  Record<'passed' | 'failed' | 'unknown' | 'figure' | 'text' | 'line' | 'card', Colour>
>;

interface ChartParts {
  dates: readonly Day[];
  by: Period;
  figure: Figure;
  /** Whether anything was measured of it. */
  hasFigures: boolean;
  width: number;
  colours: Colours;
  /** Somebody points at a period, or at none any more. */
  onPoint(index: number | undefined): void;
  onSelect(first: number, last: number): void;
}

/** In pixels. */
export const chartHeight = 280;

const font = '12px system-ui, sans-serif';

/** So far apart, in pixels, that the marks of periods can be read. */
const spaceOfMark = 64;

export function chartOptions({
  dates,
  by,
  figure,
  hasFigures,
  width,
  colours,
  onPoint,
  onSelect,
}: ChartParts): uPlot.Options {
  return {
    width,
    height: chartHeight,
    padding: [12, 0, 0, 0],
    legend: { show: false },
    scales: {
      x: { time: false, range: () => [-0.5, dates.length - 0.5] },
      sessions: { range: (_, __, most) => [0, Math.max(most, 1) * 1.05] },
      figure: { range: (_, __, most) => [0, Math.max(most, figure.reaches ?? 0) * 1.05 || 1] },
    },
    series: seriesOf(dates.length, width, colours),
    axes: [
      periodAxis(dates, by, colours),
      countAxis(colours),
      { ...figureAxis(figure, colours), show: hasFigures },
    ],
    cursor: {
      y: false,
      points: { show: false },
      drag: { x: true, y: false, setScale: false, dist: 8 },
    },
    hooks: {
      setCursor: [({ cursor: { idx } }) => onPoint(idx ?? undefined)],
      setSelect: [
        (chart) => {
          const { left, width } = chart.select;
          if (width === 0) return;
          onSelect(chart.posToIdx(left), chart.posToIdx(left + width));
          chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        },
      ],
    },
  };
}

/** In pixels: a period that is narrower has a bar that no pattern can be seen in. */
const leastForPatterns = 14;

/** Of the bars each is drawn over the one before: all sessions, those that are known, those that were passed. */
function seriesOf(
  count: number,
  width: number,
  { passed, failed, unknown, figure, card }: Colours,
): uPlot.Series[] {
  const bars = uPlot.paths.bars?.({ size: [0.7, 48] });
  const ofSessions = { scale: 'sessions', width: 0, points: { show: false }, ...(bars && { paths: bars }) };
  const filled = (pattern: typeof hatched, colour: Colour) => ({
    ...ofSessions,
    fill: (chart: uPlot) => (chart.width / count < leastForPatterns ? colour() : pattern(colour(), card())),
  });
  const size = width / count < 14 ? 4 : 7;
  return [
    {},
    filled(dotted, unknown),
    filled(hatched, failed),
    { ...ofSessions, fill: passed },
    {
      scale: 'figure',
      stroke: figure,
      width: 2,
      points: { show: true, size, width: 2, fill: card, stroke: figure },
    },
  ];
}

function periodAxis(dates: readonly Day[], by: Period, { text, line }: Colours): uPlot.Axis {
  return {
    stroke: text,
    font,
    size: 48,
    grid: { show: false },
    ticks: { stroke: line, size: 5 },
    splits: ({ bbox }) => {
      return placesOfMarks(dates, by, Math.max(Math.floor(bbox.width / uPlot.pxRatio / spaceOfMark), 1));
    },
    values: (_, splits) =>
      splits.map((index, place) => {
        const [date, before] = [dates[index], dates[splits[place - 1] ?? -1]];
        return date === undefined ? '' : markName(date, by, before);
      }),
  };
}

/** Which periods have a mark: every so many of them, and of months those that divide a year, or whole years. */
function placesOfMarks(dates: readonly Day[], by: Period, room: number): number[] {
  const least = Math.ceil(dates.length / room);
  const every = by === 'MONTH' ? ([1, 2, 3, 6, 12, 24, 60].find((months) => months >= least) ?? 120) : least;
  return dates.flatMap((date, index) => {
    const [year = 0, month = 0] = date.split('-').map(Number);
    return (by === 'MONTH' ? year * 12 + month - 1 : index) % every === 0 ? index : [];
  });
}

function countAxis({ text, line }: Colours): uPlot.Axis {
  return {
    scale: 'sessions',
    stroke: text,
    font,
    size: (_, values) => widthOf(values),
    incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000],
    values: (_, splits) => splits.map(number),
    grid: { stroke: line, width: 1 },
    ticks: { show: false },
  };
}

function figureAxis({ format, steps }: Figure, { figure }: Colours): uPlot.Axis {
  return {
    scale: 'figure',
    side: 1,
    stroke: figure,
    font,
    size: (_, values) => widthOf(values),
    ...(steps && { incrs: steps }),
    values: (_, splits) => splits.map(format),
    grid: { show: false },
    ticks: { show: false },
  };
}

/** Room for the longest of these, in pixels. There are none before the first drawing. */
const widthOf = (values: readonly string[] | null): number =>
  Math.max(28, ...(values ?? []).map((value) => value.length * 7 + 12));
