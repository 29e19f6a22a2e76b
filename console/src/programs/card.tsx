/** A program in the list, and the parts of it that the view of one program shows too. */

import type { ProgramFieldsFragment } from '../../generated/graphql.ts';
import { Badge } from '../parts/badge.tsx';
import { counted } from '../parts/counted.ts';
import { programDuration, timelineParts } from '../parts/programSegments.ts';
import { Timeline } from '../parts/timeline.tsx';
import { base } from '../paths.ts';
import { ActivateButton } from './activation.tsx';

interface ProgramCardProps {
  program: ProgramFieldsFragment;
  onActivate(): void;
}

export function ProgramCard({ program, onActivate }: ProgramCardProps) {
  const { databaseId, name, tagline, isActive, segments } = program;
  return (
    <li class={isActive ? 'card active' : 'card'}>
      <h3>
        <a href={`${base}/programs/${databaseId}`}>{name}</a>
      </h3>
      {tagline && <p>{tagline}</p>}
      <Length segments={segments} />
      {segments.length > 0 && (
        <Timeline label={`Segments of ${name}`} parts={timelineParts(segments)} isSummed />
      )}
      <div class="foot">
        <Badges of={program} />
        <ActivateButton program={program} onClick={onActivate} />
      </div>
    </li>
  );
}

export const Badges = ({ of: { isPublic, isImported } }: { of: ProgramFieldsFragment }) => (
  <span class="badges">
    <Badge>{isImported ? 'Imported' : 'Yours'}</Badge> {isPublic && <Badge>Public</Badge>}
  </span>
);

export function Length({ segments }: Pick<ProgramFieldsFragment, 'segments'>) {
  if (segments.length === 0) return <p class="hint">It has no segments.</p>;
  return (
    <p class="hint">
      {programDuration(segments)} · {counted(segments.length, 'segment')}
    </p>
  );
}
