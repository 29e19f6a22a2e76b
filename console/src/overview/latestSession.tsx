/** The newest training session. */

import { Passed } from '../parts/badge.tsx';
import { Facts } from '../parts/facts.tsx';
import { Empty } from '../parts/loaded.tsx';
import { gradeText, passedText, pointsText } from '../parts/sums.ts';
import { Time, TimeAgo } from '../parts/time.tsx';
import { base } from '../paths.ts';
import type { Viewer } from './query.ts';

export function LatestSession({ session }: { session: Viewer['latestDttSession'] }) {
  return session ? (
    <>
      <p class="lead head">
        <a href={`${base}/history/${session.databaseId}`}>
          {session.name || (
            <>
              Session of <Time at={session.createdAt} />
            </>
          )}
        </a>
        <Passed passed={session.passed} />
      </p>
      <p class="hint">
        <TimeAgo at={session.createdAt} /> (<Time at={session.createdAt} />)
      </p>
      <Facts of={factsOf(session)} />
    </>
  ) : (
    <Empty>No training session yet. The newest one appears here as soon as a trainer has sent it.</Empty>
  );
}

const factsOf = ({ segments, template }: NonNullable<Viewer['latestDttSession']>) =>
  [
    ['Points', pointsText(segments)],
    ['Segments passed', passedText(segments)],
    ['Average grade', gradeText(segments)],
    ['Program', template?.name],
  ] as const;
