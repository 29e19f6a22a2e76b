/** The program that the trainer runs next. */

import { Empty } from '../parts/loaded.tsx';
import { duration } from '../parts/time.tsx';
import { Timeline } from '../parts/timeline.tsx';
import type { Viewer } from './query.ts';

export function ActiveProgram({ program }: { program: Viewer['activeDttTemplate'] }) {
  return program ? (
    <>
      <p class="lead">
        <a href={`/console/programs/${program.databaseId}`}>{program.name}</a>{' '}
        <span class="hint">{duration(lengthOf(program.segments))} in all</span>
      </p>
      {program.tagline && <p>{program.tagline}</p>}
      {program.segments.length === 0 ? (
        <Empty>It has no segments.</Empty>
      ) : (
        <Timeline
          label="Segments, in order"
          parts={program.segments.map(({ id, type, durationSeconds, repeat }) => ({
            key: id,
            name: type,
            seconds: durationSeconds,
            times: repeat ?? null,
            kind: type,
          }))}
        />
      )}
    </>
  ) : (
    <Empty>
      No program is active. <a href="/console/programs">Choose one of your programs</a> and activate it: its
      segments are then here.
    </Empty>
  );
}

type Segments = NonNullable<Viewer['activeDttTemplate']>['segments'];

const lengthOf = (segments: Segments): number =>
  segments.reduce((sum, { durationSeconds, repeat }) => sum + durationSeconds * (repeat ?? 1), 0);
