/** Segments one after the other, each as wide as it is long. */

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

export function Timeline({ label, parts }: TimelineProps) {
  return (
    <ol class="timeline" aria-label={label}>
      {parts.map(({ key, name, seconds, times, kind }) => (
        <li key={key} data-kind={kind} style={{ flexGrow: Math.max(seconds * (times ?? 1), 1) }}>
          <b>{name}</b>{' '}
          <span>{times != null && times > 1 ? `${times} × ${duration(seconds)}` : duration(seconds)}</span>
        </li>
      ))}
    </ol>
  );
}
