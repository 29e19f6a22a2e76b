/** The course of a lock session as a bar across the available width. */

import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { language } from '../parts/language.ts';
import { duration } from '../parts/time.tsx';
import { type Course, type StretchKind, sumOf } from './course.ts';
import { marksBetween } from './scale.ts';
import './locks.css';

const kindNames: Record<StretchKind, string> = {
  locked: 'Locked',
  break: 'Break',
  open: 'Open',
  ahead: 'Still to come',
  unknown: 'Not recorded',
};

export const Legend = () => (
  <ul class="lock-legend" aria-label="What the bars show">
    {Object.entries(kindNames).map(([kind, word]) => (
      <li key={kind}>
        <span class={`stretch ${kind}`} /> {word}
      </li>
    ))}
  </ul>
);

/** How long the session was locked, on a break and open, in words. */
export function describeCourse(course: Course): string {
  const [locked, breaks, open] = [sumOf(course, 'locked'), sumOf(course, 'break'), sumOf(course, 'open')];
  return [
    locked.count > 0 ? `Locked for ${duration(locked.seconds)}` : 'Not locked',
    breaks.count === 1 && `1 break of ${duration(breaks.seconds)}`,
    breaks.count > 1 && `${breaks.count} breaks of ${duration(breaks.seconds)} in all`,
    open.count > 0 && `open for ${duration(open.seconds)}`,
    course.stretches.at(-1)?.kind === 'unknown' && 'then nothing is recorded',
  ]
    .filter((part) => part !== false)
    .join(', ');
}

export function LockBar({ course: { from, to, stretches } }: { course: Course }) {
  const [bar, width] = useWidth();
  const place = (time: number) => (time - from) / (to - from);
  const percent = (time: number) => `${place(time) * 100}%`;
  const marks = marksBetween(from, to, Math.min(Math.floor(width / markWidth), maxMarks));
  // The bar is hidden from screen readers: the text of `describeCourse` stands beside it.
  return (
    <div class="lock-bar" aria-hidden="true" ref={bar}>
      <div class="stretches">
        {stretches.map(({ key, kind, from, to }) => (
          <span
            key={key}
            class={`stretch ${kind}`}
            title={`${kindNames[kind]}: ${range.formatRange(from, to)} (${duration((to - from) / 1_000)})`}
            style={{ left: percent(from), right: `calc(100% - ${percent(to)})` }}
          />
        ))}
      </div>
      <div class="scale">
        {marks
          .filter((mark) => (1 - place(mark)) * width > markWidth)
          .map((mark, index) => (
            <span key={mark} class="mark" style={{ left: percent(mark) }}>
              <b>{clock.format(mark)}</b> {isOfNewDay(mark, marks[index - 1]) && date.format(mark)}
            </span>
          ))}
      </div>
    </div>
  );
}

const isOfNewDay = (mark: number, previous: number | undefined) =>
  previous === undefined || date.format(mark) !== date.format(previous);

/** In pixels: the width of a time below the bar. */
const markWidth = 70;
const maxMarks = 8;

/** The width of an element in pixels; 0 before it is known. */
function useWidth() {
  const element = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    if (!element.current) return undefined;
    const observer = new ResizeObserver(([entry]) => setWidth(entry?.contentRect.width ?? 0));
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return [element, width] as const;
}

const range = new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'short' });
const clock = new Intl.DateTimeFormat(language, { hour: 'numeric', minute: '2-digit' });
const date = new Intl.DateTimeFormat(language, { month: 'short', day: 'numeric' });
