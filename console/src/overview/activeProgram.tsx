/** The active program, which the trainer runs next. */

import { Empty } from '../parts/loaded.tsx';
import { programDuration, timelineParts } from '../parts/programSegments.ts';
import { Timeline } from '../parts/timeline.tsx';
import { base } from '../paths.ts';
import type { Viewer } from './query.ts';

export function ActiveProgram({ program }: { program: Viewer['activeDttTemplate'] }) {
  return program ? (
    <>
      <p class="lead">
        <a href={`${base}/programs/${program.databaseId}`}>{program.name}</a>{' '}
        <span class="hint">{programDuration(program.segments)}</span>
      </p>
      {program.tagline && <p>{program.tagline}</p>}
      {program.segments.length === 0 ? (
        <Empty>It has no segments.</Empty>
      ) : (
        <Timeline label="Segments, in order" parts={timelineParts(program.segments)} />
      )}
    </>
  ) : (
    <Empty>
      No program is active. <a href={`${base}/programs`}>Choose one of your programs</a> and activate it.
    </Empty>
  );
}
