/** A sequence of segments as a bar, on which the width of each is in proportion to its duration, with a list below it. */

import { capitalised } from './capitalised.ts';
import { numberText } from './number.ts';
import { duration } from './time.tsx';

export interface TimelinePart {
  readonly key: string;
  /** The text in the list, such as `warmup`. */
  readonly name: string;
  readonly seconds: number;
  /** How often the segment is repeated; null or undefined if that is unknown. */
  readonly times?: number | null;
  /** Decides the colour. */
  readonly kind: string;
}

interface TimelineProps {
  /** The name of the list for screen readers. */
  label: string;
  parts: readonly TimelinePart[];
  /** Whether the list has one entry for all segments of a name. */
  isSummed?: boolean;
}

/** A segment with more repeats than this is drawn as one block: its repeats would be too narrow to be told apart. */
const maxRepeatsDrawn = 24;

export function Timeline({ label, parts, isSummed = false }: TimelineProps) {
  const listed = isSummed ? summed(parts) : parts;
  return (
    <div class="timeline">
      <div class="bar" aria-hidden="true">
        {parts.map(({ key, kind, seconds, times }) => {
          const count = Math.max(times ?? 1, 1);
          return (
            <span
              key={key}
              style={{ flexGrow: Math.max(seconds * count, 1) }}
              title={duration(seconds * count)}
            >
              {Array.from({ length: count > maxRepeatsDrawn ? 1 : count }, (_, index) => (
                <i key={index} data-kind={kind} />
              ))}
            </span>
          );
        })}
      </div>
      <ol aria-label={label}>
        {listed.map(({ key, name, seconds, times, kind }) => (
          <li key={key}>
            <i data-kind={kind} aria-hidden="true" />
            <b>{capitalised(name)}</b>{' '}
            {times != null && times !== 1 ? `${numberText(times)} × ${duration(seconds)}` : duration(seconds)}
          </li>
        ))}
      </ol>
    </div>
  );
}

/** The segments of each name as one, with their time in all. A name that one segment has stays as it is. */
function summed(parts: readonly TimelinePart[]): TimelinePart[] {
  const byName = new Map<string, TimelinePart>();
  for (const part of parts) {
    const before = byName.get(part.name);
    byName.set(
      part.name,
      before ? { ...before, times: 1, seconds: lengthOf(before) + lengthOf(part) } : part,
    );
  }
  return [...byName.values()];
}

const lengthOf = ({ seconds, times }: TimelinePart) => seconds * Math.max(times ?? 1, 1);
