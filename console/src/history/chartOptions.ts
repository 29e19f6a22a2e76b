/** The options of the chart. Its x values are the indexes of the periods and not times, so that all periods are equally wide. */

import uPlot from 'uplot';
import type { Day, Period } from './calendar.ts';
import { type Figure, number } from './figures.ts';
import { dotted, hatched } from './fills.ts';
import { axisLabel } from './periodName.ts';

type Colour = () => string;
export type Colours = Readonly<
  Record<'passed' | 'failed' | 'unknown' | 'figure' | 'text' | 'line' | 'card', Colour>
>;

interface ChartParts {
  dates: readonly Day[];
  by: Period;
  figure: Figure;
  /** Whether any period has a value of the figure. */
  hasFigures: boolean;
  width: number;
  colours: Colours;
  /** Called when the pointer is over another period, or over none. */
  onPoint(index: number | undefined): void;
  /** Called when the user has dragged over the periods from the first to the last of these indexes. */
  onSelect(first: number, last: number): void;
}

/** In pixels. */
export const chartHeight = 280;

const font = '12px system-ui, sans-serif';

/** In pixels: the least distance between two labels of the x axis. */
const minLabelDistance = 64;

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
      sessions: { range: (_, __, max) => [0, Math.max(max, 1) * 1.05] },
      figure: { range: (_, __, max) => [0, Math.max(max, figure.minTop ?? 0) * 1.05 || 1] },
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

/** In pixels: the bar of a narrower period has no room for a pattern. */
const minWidthOfPattern = 14;

/** Each bar is drawn over the previous one: all sessions, those with a known result, those that were passed. */
function seriesOf(
  count: number,
  width: number,
  { passed, failed, unknown, figure, card }: Colours,
): uPlot.Series[] {
  const bars = uPlot.paths.bars?.({ size: [0.7, 48] });
  const ofSessions = { scale: 'sessions', width: 0, points: { show: false }, ...(bars && { paths: bars }) };
  const filled = (pattern: typeof hatched, colour: Colour) => ({
    ...ofSessions,
    fill: (chart: uPlot) => (chart.width / count < minWidthOfPattern ? colour() : pattern(colour(), card())),
  });
  const size = width / count < minWidthOfPattern ? 4 : 7;
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
      return indexesOfLabels(
        dates,
        by,
        Math.max(Math.floor(bbox.width / uPlot.pxRatio / minLabelDistance), 1),
      );
    },
    values: (_, splits) =>
      splits.map((index, place) => {
        const [date, previous] = [dates[index], dates[splits[place - 1] ?? -1]];
        return date === undefined ? '' : axisLabel(date, by, previous);
      }),
  };
}

/** The indexes of the periods with a label: at equal distances, which for months divide a year or are whole years. */
function indexesOfLabels(dates: readonly Day[], by: Period, maxLabels: number): number[] {
  const minStep = Math.ceil(dates.length / maxLabels);
  const step =
    by === 'MONTH' ? ([1, 2, 3, 6, 12, 24, 60].find((months) => months >= minStep) ?? 120) : minStep;
  return dates.flatMap((date, index) => {
    const [year = 0, month = 0] = date.split('-').map(Number);
    return (by === 'MONTH' ? year * 12 + month - 1 : index) % step === 0 ? index : [];
  });
}

function countAxis({ text, line }: Colours): uPlot.Axis {
  return {
    scale: 'sessions',
    stroke: text,
    font,
    size: (_, values) => axisWidth(values),
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
    size: (_, values) => axisWidth(values),
    ...(steps && { incrs: steps }),
    values: (_, splits) => splits.map(format),
    grid: { show: false },
    ticks: { show: false },
  };
}

/** The width of an axis with these labels, in pixels. There are none before the first drawing. */
const axisWidth = (values: readonly string[] | null): number =>
  Math.max(28, ...(values ?? []).map((value) => value.length * 7 + 12));
