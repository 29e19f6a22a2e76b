/** A lock session in a list. */

import { Badge } from '../parts/badge.tsx';
import { capitalised } from '../parts/capitalised.ts';
import { duration, Time, useNow } from '../parts/time.tsx';
import { base } from '../paths.ts';
import { courseOf, type LockHistory } from './course.ts';
import { describeCourse, LockBar } from './lockBar.tsx';

export interface Session extends LockHistory {
  readonly databaseId: number;
  readonly name?: string | null | undefined;
  readonly lockState: string;
}

export const nameOf = ({ name, databaseId }: Pick<Session, 'name' | 'databaseId'>): string =>
  name || `Lock session ${databaseId}`;

export function SessionCard({ session }: { session: Session }) {
  const course = courseOf(session, useNow(30_000));
  return (
    <article>
      <div class="head">
        <h3>
          <a href={`${base}/locks/${session.databaseId}`}>{nameOf(session)}</a>
        </h3>
        <State session={session} />
      </div>
      <p class="hint">
        {session.isActive && 'Running since '}
        <Time at={session.startedAt} />
        {!session.isActive && session.endsAt != null && (
          <>
            {' – '}
            <Time at={session.endsAt} />
          </>
        )}
        {` · planned for ${duration(session.durationSeconds)}`}
      </p>
      {course && <LockBar course={course} />}
      <p>{course ? describeCourse(course) : neverLocked}</p>
    </article>
  );
}

/** The text in place of a course. */
export const neverLocked = 'No locked time is recorded.';

export const State = ({ session: { isActive, lockState } }: { session: Session }) => (
  <Badge kind={isActive ? 'accent' : 'plain'}>{capitalised(lockState)}</Badge>
);
