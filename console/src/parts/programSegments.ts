/** The segments of a program together: their duration, their number, and their parts of a timeline. */

import { duration } from './time.tsx';
import type { TimelinePart } from './timeline.tsx';

export interface ProgramSegment {
  readonly id: string;
  readonly type: string;
  readonly durationSeconds: number;
  /** How often the segment is done; null where a mirror does not know it yet. */
  readonly repeat?: number | null | undefined;
}

export const timelineParts = (segments: readonly ProgramSegment[]): TimelinePart[] =>
  segments.map(({ id, type, durationSeconds, repeat }) => ({
    key: id,
    name: type,
    seconds: durationSeconds,
    times: repeat ?? null,
    kind: type,
  }));

/** How long a program takes, as text. It begins with "At least" if a number of repeats is unknown. */
export function programDuration(segments: readonly ProgramSegment[]): string {
  const seconds = segments.reduce(
    (sum, { durationSeconds, repeat }) => sum + durationSeconds * (repeat ?? 1),
    0,
  );
  const isKnown = segments.every(({ repeat }) => repeat != null);
  return `${isKnown ? '' : 'At least '}${duration(seconds)}`;
}
