/** A card of the overview. */

import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';
import { Empty } from '../parts/loaded.tsx';

interface PartProps {
  name: string;
  /** The width of the card in a wide window; `column` for a part of a card. */
  kind?: 'wide' | 'half' | 'column';
  /** Whether the gateway could read the content. */
  isKnown: boolean;
  children: ComponentChildren;
}

export function Part({ name, kind = 'half', isKnown, children }: PartProps) {
  const id = useId();
  return (
    <section class={kind === 'column' ? undefined : `card ${kind}`} aria-labelledby={id}>
      <h2 id={id}>{name}</h2>
      {isKnown ? children : <Empty>The gateway could not read this just now.</Empty>}
    </section>
  );
}
