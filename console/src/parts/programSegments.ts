/** What the segments of a program come to. */

import { duration } from './time.tsx';
import type { TimelinePart } from './timeline.tsx';

export interface ProgramSegment {
  readonly id: string;
  readonly type: string;
  readonly durationSeconds: number;
  /** Null where a mirror was not told how often it is done. */
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

/** How long a program takes, or at least takes, in words. */
export function programDuration(segments: readonly ProgramSegment[]): string {
  const seconds = segments.reduce(
    (sum, { durationSeconds, repeat }) => sum + durationSeconds * (repeat ?? 1),
    0,
  );
  const isKnown = segments.every(({ repeat }) => repeat != null);
  return `${isKnown ? '' : 'At least '}${duration(seconds)}`;
}

/** How many parts it has, each segment as often as it is done. */
export const countParts = (segments: readonly ProgramSegment[]): number =>
  segments.reduce((sum, { repeat }) => sum + Math.max(repeat ?? 1, 1), 0);
