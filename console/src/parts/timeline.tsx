/** Segments one after the other: a bar on which each is as long as it lasts, and below it what they are. */

import { numberText } from './number.ts';
import { duration } from './time.tsx';

export interface TimelinePart {
  readonly key: string;
  /** What it is, such as `warmup`. */
  readonly name: string;
  readonly seconds: number;
  /** How often it comes, one after the other, where it is more than once. */
  readonly times?: number | null;
  /** Which of the colours it has: parts of one kind have the same. */
  readonly kind: string;
}

interface TimelineProps {
  /** What it shows, for those who do not see it. */
  label: string;
  parts: readonly TimelinePart[];
}

/** Beyond so many a part is drawn as a whole: they would be too narrow to be told apart. */
const mostDrawn = 24;

export function Timeline({ label, parts }: TimelineProps) {
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
              {Array.from({ length: count > mostDrawn ? 1 : count }, (_, index) => (
                <i key={index} data-kind={kind} />
              ))}
            </span>
          );
        })}
      </div>
      <ol aria-label={label}>
        {parts.map(({ key, name, seconds, times, kind }) => (
          <li key={key}>
            <i data-kind={kind} aria-hidden="true" />
            <b>{name}</b>{' '}
            {times != null && times !== 1 ? `${numberText(times)} × ${duration(seconds)}` : duration(seconds)}
          </li>
        ))}
      </ol>
    </div>
  );
}
