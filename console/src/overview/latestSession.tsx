/** The newest training session. */

import { Passed } from '../parts/badge.tsx';
import { Facts } from '../parts/facts.tsx';
import { Empty } from '../parts/loaded.tsx';
import { Time, TimeAgo } from '../parts/time.tsx';
import type { Viewer } from './query.ts';

export function LatestSession({ session }: { session: Viewer['latestDttSession'] }) {
  return session ? (
    <>
      <p class="lead head">
        <a href={`/console/history/${session.databaseId}`}>
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
    <Empty>No training session yet. The newest one is here as soon as a trainer has sent it.</Empty>
  );
}

function factsOf({ segments, template }: NonNullable<Viewer['latestDttSession']>) {
  const points = segments.flatMap(({ points }) => points ?? []);
  const grades = segments.flatMap(({ gradePercent }) => gradePercent ?? []);
  const passed = segments.filter(({ passed }) => passed === true).length;
  return [
    ['Points', points.length === 0 ? null : sum(points).toLocaleString()],
    ['Segments passed', segments.length === 0 ? null : `${passed} of ${segments.length}`],
    ['Grade on average', grades.length === 0 ? null : percent.format(sum(grades) / grades.length / 100)],
    ['Program', template?.name],
  ] as const;
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

const percent = new Intl.NumberFormat(undefined, { style: 'percent' });
