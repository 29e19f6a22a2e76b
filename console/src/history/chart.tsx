/**
 * Sessions over time, for the eye: what it shows stands in a table as well, for keyboards and screen readers. Its colours are
 * those of the legend, which the style sheet gives.
 */

import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import type { FigureName } from './address.ts';
import { type Day, lastDayOf, type Period } from './calendar.ts';
import { type Colours, chartHeight, chartOptions } from './chartOptions.ts';
import { figures, number, orNothing } from './figures.ts';
import { periodName } from './periodName.ts';
import type { Group } from './queries.ts';

interface ChartProps {
  /** One for each period, without gaps. */
  groups: readonly Group[];
  by: Period;
  figure: FigureName;
  /** Somebody has dragged from the one period to the other. */
  onSelect(from: Day, to: Day): void;
}

export function Chart({ groups, by, figure, onSelect }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const legend = useRef<HTMLDivElement>(null);
  const [pointed, setPointed] = useState<number>();
  const select = useRef(onSelect);
  select.current = onSelect;
  const dates = useMemo(() => groups.flatMap(({ period }) => period?.date ?? []), [groups]);

  useLayoutEffect(() => {
    const element = place.current;
    if (!element) return;
    const options = chartOptions({
      dates,
      by,
      figure: figures[figure],
      width: element.clientWidth,
      colours: coloursOf(legend.current),
      onPoint: setPointed,
      onSelect(first, last) {
        const [from, to] = [dates[first], dates[last]];
        if (from !== undefined && to !== undefined) select.current(from, lastDayOf(to, by));
      },
    });
    const chart = new uPlot(
      options,
      [
        dates.map((_, index) => index),
        groups.map(({ sessionCount }) => sessionCount),
        groups.map(({ passedSessionCount }) => passedSessionCount),
        groups.map((group) => figures[figure].of(group)),
      ],
      element,
    );
    const stop = keepUp(chart, element);
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
        ref={place}
        class="plot"
        role="img"
        aria-label={`A chart of the sessions, the passed ones and ${label.toLowerCase()}. The table below has its numbers.`}
        style={{ minHeight: `${chartHeight}px` }}
      />
    </div>
  );
}

/** Has a chart follow the width of what it is in, and the colours of day and night. */
function keepUp(chart: uPlot, element: HTMLElement): () => void {
  const observer = new ResizeObserver(() => {
    const width = element.clientWidth;
    if (width > 0 && width !== chart.width) chart.setSize({ width, height: chartHeight });
  });
  observer.observe(element);
  const night = matchMedia('(prefers-color-scheme: dark)');
  const redraw = () => chart.redraw();
  night.addEventListener('change', redraw);
  return () => {
    observer.disconnect();
    night.removeEventListener('change', redraw);
  };
}

/** Canvases know no variables: the colours are asked of elements that have them. */
function coloursOf(legend: HTMLElement | null): Colours {
  const colour = (name: string) => () => {
    const element = legend?.querySelector(`.${name}`);
    return element ? getComputedStyle(element).color : 'gray';
  };
  return {
    sessions: colour('sessions'),
    passed: colour('passed'),
    figure: colour('figure'),
    text: colour('text'),
    line: colour('line'),
    card: colour('card-ground'),
  };
}

interface LegendProps {
  of: { current: HTMLDivElement | null };
  figure: FigureName;
  /** What somebody points at. */
  group: Group | undefined;
  by: Period;
}

function Legend({ of, figure, group, by }: LegendProps) {
  const { label, of: figureOf, format } = figures[figure];
  return (
    <div ref={of} class="legend" aria-hidden="true">
      <span>
        <i class="swatch sessions" /> Sessions {group && <b>{number(group.sessionCount)}</b>}
      </span>
      <span>
        <i class="swatch passed" /> passed {group && <b>{number(group.passedSessionCount)}</b>}
      </span>
      <span>
        <i class="swatch figure" /> {label} {group && <b>{orNothing(figureOf(group), format)}</b>}
      </span>
      <span class="pointed text">
        {group?.period ? periodName(group.period.date, by) : 'Drag over the chart to look closer.'}
      </span>
      <i class="line" />
      <i class="card-ground" />
    </div>
  );
}
