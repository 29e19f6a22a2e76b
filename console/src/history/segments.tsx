/** Segments with what was measured beside what was to be reached. */

import type { SessionQuery } from '../../generated/graphql.ts';
import { Passed } from '../parts/badge.tsx';
import { duration } from '../parts/time.tsx';
import { asDistance, asPercent, nothing, number, orNothing } from './figures.ts';

type Segment = NonNullable<SessionQuery['dttSession']>['segments'][number];

export function Segments({ segments }: { segments: readonly Segment[] }) {
  return (
    <>
      <table class="history-segments">
        <thead>
          <tr>
            <th scope="col">Segment</th>
            <th scope="col">Result</th>
            <th scope="col" class="number">
              Grade
            </th>
            <th scope="col" class="number">
              Points
            </th>
            <th scope="col">Duration</th>
            <th scope="col">Repetitions</th>
            <th scope="col">Speed</th>
          </tr>
        </thead>
        <tbody>
          {segments.map((segment, index) => (
            <SegmentRow key={segment.id} segment={segment} place={index + 1} />
          ))}
        </tbody>
      </table>
      <MoreMeasured segments={segments} />
    </>
  );
}

function SegmentRow({ segment, place }: { segment: Segment; place: number }) {
  return (
    <tr>
      <th scope="row" class="free-text">
        {number(place)}. {segment.rawType}
      </th>
      <td>
        <Passed passed={segment.passed} />
      </td>
      <td class="number" data-label="Grade">
        {orNothing(segment.gradePercent, asPercent)}
      </td>
      <td class="number" data-label="Points">
        {orNothing(segment.points, number)}
      </td>
      <td data-label="Duration">
        <Against
          measured={segment.durationMeasuredSeconds}
          target={segment.durationTargetSeconds}
          format={duration}
        />
      </td>
      <td data-label="Repetitions">
        <Against measured={segment.repsMeasured} target={segment.repsTarget} format={number} />
      </td>
      <td data-label="Speed">
        <Against measured={segment.speedMeasured} target={segment.speedTarget} format={number} />
      </td>
    </tr>
  );
}

interface AgainstProps {
  measured: number | null | undefined;
  target: number | null | undefined;
  format(value: number): string;
}

/** A bar of what was measured, with a line where the target is. */
function Against({ measured, target, format }: AgainstProps) {
  if (measured == null && target == null) return <>{nothing}</>;
  const whole = Math.max(measured ?? 0, target ?? 0) || 1;
  const part = (value: number) => `${(Math.max(value, 0) / whole) * 100}%`;
  return (
    <div class="history-against">
      <span>
        <b>{orNothing(measured, format)}</b>
        {target == null ? <span class="hint"> without a target</span> : ` of ${format(target)}`}
      </span>
      <span class="bar" aria-hidden="true">
        <span class="measured" style={{ width: part(measured ?? 0) }} />
        {target != null && <span class="target" style={{ insetInlineStart: part(target) }} />}
      </span>
    </div>
  );
}

const more: readonly (readonly [name: string, value: (segment: Segment) => string])[] = [
  ['Distance', ({ distanceTravelledMetres }) => orNothing(distanceTravelledMetres, asDistance)],
  ['Stroke length', ({ strokeLength }) => orNothing(strokeLength, number)],
  ['Target depth', ({ targetDepth }) => orNothing(targetDepth, number)],
  ['Tolerance', ({ targetWindow }) => orNothing(targetWindow, number)],
  [
    'Time in target depth',
    ({ timeInTargetDepthMilliseconds }) =>
      orNothing(timeInTargetDepthMilliseconds, (milliseconds) => duration(milliseconds / 1_000)),
  ],
];

function MoreMeasured({ segments }: { segments: readonly Segment[] }) {
  return (
    <details>
      <summary>What else was measured</summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reachable by keyboard. */}
      <section class="scroll" tabIndex={0} aria-label="What else was measured">
        <table>
          <thead>
            <tr>
              <th scope="col">Segment</th>
              {more.map(([name]) => (
                <th key={name} scope="col" class="number">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {segments.map((segment, index) => (
              <tr key={segment.id}>
                <th scope="row" class="free-text">
                  {number(index + 1)}. {segment.rawType}
                </th>
                {more.map(([name, value]) => (
                  <td key={name} class="number">
                    {value(segment)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </details>
  );
}
