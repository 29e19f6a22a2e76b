/** A card of the overview. */

import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';
import { Empty } from '../parts/loaded.tsx';

interface PartProps {
  name: string;
  /** How much room it takes where there is much. */
  kind?: 'wide' | 'half' | 'third';
  /** Whether the gateway could say what belongs here. */
  isKnown: boolean;
  children: ComponentChildren;
}

export function Part({ name, kind = 'half', isKnown, children }: PartProps) {
  const id = useId();
  return (
    <section class={`card ${kind}`} aria-labelledby={id}>
      <h2 id={id}>{name}</h2>
      {isKnown ? children : <Empty>The gateway could not read this just now.</Empty>}
    </section>
  );
}
