/** A word on how something is. */

import type { ComponentChildren } from 'preact';

interface BadgeProps {
  /** What it stands out by, besides its words. */
  kind?: 'plain' | 'accent' | 'good' | 'bad';
  children: ComponentChildren;
}

export const Badge = ({ kind = 'plain', children }: BadgeProps) => (
  <span class={`badge ${kind}`}>{children}</span>
);

/** Whether a session or a segment was passed, which may not be known. */
export function Passed({ passed }: { passed: boolean | null | undefined }) {
  if (passed == null) return <Badge>– Not known</Badge>;
  return passed ? <Badge kind="good">✓ Passed</Badge> : <Badge kind="bad">✗ Not passed</Badge>;
}
