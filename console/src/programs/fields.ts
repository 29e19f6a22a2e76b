/** What both views read of a program. */

import { graphql } from '../api/graphql.ts';
import type { TimelinePart } from '../parts/timeline.tsx';

export const programFields = graphql(`
  fragment ProgramFields on DttTemplate {
    id
    databaseId
    name
    tagline
    isPublic
    isActive
    isImported
    viewerCanActivate
    segments {
      id
      type
      durationSeconds
      repeat
    }
  }
`);

interface Segment {
  readonly id: string;
  readonly type: string;
  readonly durationSeconds: number;
  readonly repeat?: number | null | undefined;
}

export const partsOf = (segments: readonly Segment[]): TimelinePart[] =>
  segments.map(({ id, type, durationSeconds, repeat }) => ({
    key: id,
    name: type,
    seconds: durationSeconds,
    times: repeat ?? null,
    kind: type,
  }));

/** How long a program takes, in seconds. */
export const lengthOf = (segments: readonly Segment[]): number =>
  segments.reduce((sum, { durationSeconds, repeat }) => sum + durationSeconds * (repeat ?? 1), 0);

/** How many parts it has, each segment as often as it is done. */
export const countOf = (segments: readonly Segment[]): number =>
  segments.reduce((sum, { repeat }) => sum + Math.max(repeat ?? 1, 1), 0);

/** Whether it is not known how often some part is done, so that the program may take longer. */
export const isAtLeast = (segments: readonly Segment[]): boolean =>
  segments.some(({ repeat }) => repeat == null);
