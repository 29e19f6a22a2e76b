/** The totals of the sessions that are shown. Their places are there before the values arrive, so that nothing moves. */

import { counted } from '../parts/counted.ts';
import { Figures } from '../parts/facts.tsx';
import { duration } from '../parts/time.tsx';
import { asDistance, asPercent, nothing, number, orNothing, share } from './figures.ts';
import type { Total } from './queries.ts';

export function Totals({ total }: { total: Total | undefined }) {
  const pending = total?.detailsPendingCount ?? 0;
  return (
    <>
      <Figures
        label="In all"
        of={[
          ['Sessions', orNothing(total?.sessionCount, number)],
          ['Pass rate', total ? passRate(total) : '…'],
          ['Average grade', orNothing(total?.averageGradePercent, asPercent)],
          ['Points', orNothing(total?.totalPoints, number)],
          ['Repetitions', orNothing(total?.totalRepsMeasured, number)],
          ['Training time', orNothing(total?.totalDurationMeasuredSeconds, duration)],
          ['Distance', orNothing(total?.totalDistanceTravelledMetres, asDistance)],
        ]}
      />
      {pending > 0 && (
        <p class="note">
          {counted(pending, 'session')} not complete yet: repetitions, training time and distance of these are
          missing above.
        </p>
      )}
    </>
  );
}

/** The share of the sessions with a result that were passed. */
function passRate({ passedSessionCount, failedSessionCount }: Total): string {
  const known = passedSessionCount + failedSessionCount;
  return known === 0 ? nothing : share(passedSessionCount, known);
}
