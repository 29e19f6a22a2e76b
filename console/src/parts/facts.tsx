/** Lists of names and values: figures in large type, and facts. A value that is null or undefined is left out. */

import type { ComponentChildren } from 'preact';
import { numberText } from './number.ts';

type NamedValues = readonly (readonly [name: string, value: ComponentChildren])[];

const withoutUnknown = (values: NamedValues) =>
  values.filter(([, value]) => value !== null && value !== undefined);

interface FiguresProps {
  label: string;
  of: readonly (readonly [name: string, value: number | string | null | undefined])[];
}

export function Figures({ label, of }: FiguresProps) {
  const shown = withoutUnknown(of);
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

export const Facts = ({ of }: { of: NamedValues }) => (
  <dl class="facts">
    {withoutUnknown(of).map(([name, value]) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
);
