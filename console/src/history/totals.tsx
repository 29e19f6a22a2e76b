/** The figures of all sessions that are shown. */

import { Figures } from '../parts/facts.tsx';
import { duration } from '../parts/time.tsx';
import { asMetres, asPercent, number, orNothing, share } from './figures.ts';
import type { Stats } from './queries.ts';

export function Totals({ total }: { total: Stats['total'] }) {
  const { sessionCount, passedSessionCount, detailsPendingCount } = total;
  return (
    <>
      <Figures
        label="In all"
        of={[
          ['Sessions', number(sessionCount)],
          ['Passed', share(passedSessionCount, sessionCount)],
          ['Average grade', orNothing(total.averageGradePercent, asPercent)],
          ['Points', orNothing(total.totalPoints, number)],
          ['Repetitions', orNothing(total.totalRepsMeasured, number)],
          ['Duration', orNothing(total.totalDurationMeasuredSeconds, duration)],
          ['Distance', orNothing(total.totalDistanceTravelledMetres, asMetres)],
        ]}
      />
      {detailsPendingCount > 0 && (
        <p class="note">
          Of {number(detailsPendingCount)} {detailsPendingCount === 1 ? 'session' : 'sessions'} not everything
          is here yet: repetitions, durations and distances of these are missing above.
        </p>
      )}
    </>
  );
}
