/** The figures of all sessions that are shown. */

import { Figures } from '../parts/facts.tsx';
import { duration } from '../parts/time.tsx';
import { asDistance, asPercent, nothing, number, orNothing, share } from './figures.ts';
import type { Total } from './queries.ts';

export function Totals({ total }: { total: Total }) {
  const { sessionCount, passedSessionCount, failedSessionCount, detailsPendingCount } = total;
  const known = passedSessionCount + failedSessionCount;
  return (
    <>
      <Figures
        label="In all"
        of={[
          ['Sessions', number(sessionCount)],
          [
            known === sessionCount ? 'Passed' : 'Passed of known',
            known === 0 ? nothing : share(passedSessionCount, known),
          ],
          ['Average grade', orNothing(total.averageGradePercent, asPercent)],
          ['Points', orNothing(total.totalPoints, number)],
          ['Repetitions', orNothing(total.totalRepsMeasured, number)],
          ['Duration', orNothing(total.totalDurationMeasuredSeconds, duration)],
          ['Distance', orNothing(total.totalDistanceTravelledMetres, asDistance)],
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
