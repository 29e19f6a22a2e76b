/** The segments of a session: measured values beside their targets. */

import type { SessionQuery } from '../../generated/graphql.ts';
import { Passed } from '../parts/badge.tsx';
import { capitalised } from '../parts/capitalised.ts';
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
            <SegmentRow key={segment.id} segment={segment} position={index + 1} />
          ))}
        </tbody>
      </table>
      <OtherMeasurements segments={segments} />
    </>
  );
}

function SegmentRow({ segment, position }: { segment: Segment; position: number }) {
  return (
    <tr>
      <th scope="row" class="free-text">
        {number(position)}. {capitalised(segment.rawType)}
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
        <MeasuredBar
          measured={segment.durationMeasuredSeconds}
          target={segment.durationTargetSeconds}
          format={duration}
        />
      </td>
      <td data-label="Repetitions">
        <MeasuredBar measured={segment.repsMeasured} target={segment.repsTarget} format={number} />
      </td>
      <td data-label="Speed">
        <MeasuredBar measured={segment.speedMeasured} target={segment.speedTarget} format={number} />
      </td>
    </tr>
  );
}

interface MeasuredBarProps {
  measured: number | null | undefined;
  target: number | null | undefined;
  format(value: number): string;
}

/** The measured value as a bar, with a line at the target. */
function MeasuredBar({ measured, target, format }: MeasuredBarProps) {
  if (measured == null && target == null) return <>{nothing}</>;
  const fullWidth = Math.max(measured ?? 0, target ?? 0) || 1;
  const widthOf = (value: number) => `${(Math.max(value, 0) / fullWidth) * 100}%`;
  return (
    <div class="history-against">
      <span>
        <b>{orNothing(measured, format)}</b>
        {target == null ? <span class="hint"> without a target</span> : ` of ${format(target)}`}
      </span>
      <span class="bar" aria-hidden="true">
        <span class="measured" style={{ width: widthOf(measured ?? 0) }} />
        {target != null && <span class="target" style={{ insetInlineStart: widthOf(target) }} />}
      </span>
    </div>
  );
}

const otherMeasurements: readonly (readonly [name: string, value: (segment: Segment) => string])[] = [
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

function OtherMeasurements({ segments }: { segments: readonly Segment[] }) {
  return (
    <details>
      <summary>More measurements</summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reachable by keyboard. */}
      <section class="scroll" tabIndex={0} aria-label="More measurements">
        <table>
          <thead>
            <tr>
              <th scope="col">Segment</th>
              {otherMeasurements.map(([name]) => (
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
                  {number(index + 1)}. {capitalised(segment.rawType)}
                </th>
                {otherMeasurements.map(([name, value]) => (
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
