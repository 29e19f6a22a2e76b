/**
 * The chart of sessions over time. A table beside it has the same numbers for keyboards and screen readers. The chart takes its
 * colours from the elements of the legend, so that they are in the style sheet alone.
 */

import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { unknownCountOf } from '../parts/sums.ts';
import type { FigureName } from './address.ts';
import { type Day, lastDayOf, type Period } from './calendar.ts';
import { type Colours, chartHeight, chartOptions } from './chartOptions.ts';
import { type Figure, figures, number, orNothing } from './figures.ts';
import { periodName } from './periodName.ts';
import type { Group } from './queries.ts';

interface ChartProps {
  /** One for each period, in order of time. */
  groups: readonly Group[];
  by: Period;
  figure: FigureName;
  /** Called when the user has dragged from the one period to the other. */
  onSelect(from: Day, to: Day): void;
}

export function Chart({ groups, by, figure, onSelect }: ChartProps) {
  const plot = useRef<HTMLDivElement>(null);
  const legend = useRef<HTMLDivElement>(null);
  const [pointed, setPointed] = useState<number>();
  const select = useRef(onSelect);
  select.current = onSelect;

  useLayoutEffect(() => {
    const element = plot.current;
    if (!element || groups.length === 0) return;
    const chart = draw(element, {
      groups,
      by,
      figure: figures[figure],
      colours: coloursOf(legend.current),
      onPoint: setPointed,
      onSelect: (from, to) => select.current(from, to),
    });
    const stop = followPage(chart, element);
    return () => {
      stop();
      chart.destroy();
      setPointed(undefined);
    };
  }, [groups, by, figure]);

  const label = figures[figure].label;
  return (
    <div class="history-chart">
      <Legend
        of={legend}
        figure={figure}
        group={pointed === undefined ? undefined : groups[pointed]}
        by={by}
      />
      <div
        ref={plot}
        class="plot"
        role="img"
        aria-label={`A chart of the sessions, by whether they were passed, and ${label.toLowerCase()}. The table below has its numbers.`}
        style={{ minHeight: `${chartHeight}px` }}
      />
    </div>
  );
}

interface Drawing {
  groups: readonly Group[];
  by: Period;
  figure: Figure;
  colours: Colours;
  onPoint(index: number | undefined): void;
  onSelect(from: Day, to: Day): void;
}

function draw(element: HTMLElement, { groups, by, figure, colours, onPoint, onSelect }: Drawing): uPlot {
  const dates = groups.flatMap(({ period }) => period?.date ?? []);
  const values = groups.map((group) => figure.of(group) ?? null);
  const options = chartOptions({
    dates,
    by,
    figure,
    hasFigures: values.some((value) => value !== null),
    width: element.clientWidth,
    colours,
    onPoint,
    onSelect(first, last) {
      const [from, to] = [dates[first], dates[last]];
      if (from !== undefined && to !== undefined) onSelect(from, lastDayOf(to, by));
    },
  });
  const data: uPlot.AlignedData = [
    dates.map((_, index) => index),
    groups.map(({ sessionCount }) => sessionCount),
    groups.map(({ passedSessionCount, failedSessionCount }) => passedSessionCount + failedSessionCount),
    groups.map(({ passedSessionCount }) => passedSessionCount),
    values,
  ];
  return new uPlot(options, data, element);
}

/** Resizes the chart with its element, and redraws it when the colour scheme changes. @returns a function that stops it. */
function followPage(chart: uPlot, element: HTMLElement): () => void {
  const observer = new ResizeObserver(() => {
    const width = element.clientWidth;
    if (width > 0 && width !== chart.width) chart.setSize({ width, height: chartHeight });
  });
  observer.observe(element);
  const darkScheme = matchMedia('(prefers-color-scheme: dark)');
  const redraw = () => chart.redraw();
  darkScheme.addEventListener('change', redraw);
  // The theme that the user chooses is a style of the root element.
  const themeObserver = new MutationObserver(redraw);
  themeObserver.observe(document.documentElement, { attributeFilter: ['style'] });
  return () => {
    observer.disconnect();
    themeObserver.disconnect();
    darkScheme.removeEventListener('change', redraw);
  };
}

/** A canvas cannot use CSS variables, so the colours are read from elements of the legend. */
function coloursOf(legend: HTMLElement | null): Colours {
  const colour = (name: string) => () => {
    const element = legend?.querySelector(`.${name}`);
    return element ? getComputedStyle(element).color : 'gray';
  };
  return {
    passed: colour('passed'),
    failed: colour('failed'),
    unknown: colour('unknown'),
    figure: colour('figure'),
    text: colour('text'),
    line: colour('line'),
    card: colour('card-ground'),
  };
}

interface LegendProps {
  of: { current: HTMLDivElement | null };
  figure: FigureName;
  /** The period under the pointer. */
  group: Group | undefined;
  by: Period;
}

function Legend({ of, figure, group, by }: LegendProps) {
  const { label, of: figureOf, format } = figures[figure];
  return (
    <div ref={of} class="legend" aria-hidden="true">
      <span>
        <i class="swatch passed" /> Passed {group && <b>{number(group.passedSessionCount)}</b>}
      </span>
      <span>
        <i class="swatch failed" /> Not passed {group && <b>{number(group.failedSessionCount)}</b>}
      </span>
      <span>
        <i class="swatch unknown" /> No result {group && <b>{number(unknownCountOf(group))}</b>}
      </span>
      <span>
        <i class="swatch figure" /> {label} {group && <b>{orNothing(figureOf(group), format)}</b>}
      </span>
      {group?.period ? (
        <span class="text">{periodName(group.period.date, by)}</span>
      ) : (
        <span class="text by-dragging">Drag over the chart to zoom in.</span>
      )}
      <i class="line" />
      <i class="card-ground" />
    </div>
  );
}
