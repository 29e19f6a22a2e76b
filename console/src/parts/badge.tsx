/** A word or two in a frame that say what state something is in. */

import type { ComponentChildren } from 'preact';

interface BadgeProps {
  /** Decides the colour. */
  kind?: 'plain' | 'accent' | 'good' | 'bad';
  children: ComponentChildren;
}

export const Badge = ({ kind = 'plain', children }: BadgeProps) => (
  <span class={`badge ${kind}`}>{children}</span>
);

/** The result of a session or a segment, which may be unknown. */
export function Passed({ passed }: { passed: boolean | null | undefined }) {
  if (passed == null) return <Badge>– No result</Badge>;
  return passed ? <Badge kind="good">✓ Passed</Badge> : <Badge kind="bad">✗ Not passed</Badge>;
}
