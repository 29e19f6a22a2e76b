/** Names and values: figures to be seen at a glance, and facts to be read. What nobody knows is left out. */

import type { ComponentChildren } from 'preact';
import { numberText } from './number.ts';

type Named = readonly (readonly [name: string, value: ComponentChildren])[];

const known = (all: Named) => all.filter(([, value]) => value !== null && value !== undefined);

interface FiguresProps {
  label: string;
  of: readonly (readonly [name: string, value: number | string | null | undefined])[];
}

export function Figures({ label, of }: FiguresProps) {
  const shown = known(of);
  if (shown.length === 0) return null;
  return (
    <section aria-label={label}>
      <dl class="figures">
        {shown.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{typeof value === 'number' ? numberText(value) : value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

export const Facts = ({ of }: { of: Named }) => (
  <dl class="facts">
    {known(of).map(([name, value]) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
);
