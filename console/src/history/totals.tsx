/** The figures of all sessions that are shown. */

import { duration } from '../parts/time.tsx';
import { asMetres, asPercent, nothing, number, orNothing, share } from './figures.ts';
import type { Stats } from './queries.ts';

export function Totals({ total }: { total: Stats['total'] }) {
  const { sessionCount, passedSessionCount, failedSessionCount, detailsPendingCount } = total;
  const unknown = sessionCount - passedSessionCount - failedSessionCount;
  const shown: readonly (readonly [name: string, value: string, more?: string])[] = [
    ['Sessions', number(sessionCount)],
    [
      'Passed',
      sessionCount === 0 ? nothing : share(passedSessionCount, sessionCount),
      `${number(passedSessionCount)} of ${number(sessionCount)}${unknown > 0 ? `, ${number(unknown)} not said` : ''}`,
    ],
    ['Average grade', orNothing(total.averageGradePercent, asPercent)],
    ['Points', orNothing(total.totalPoints, number)],
    ['Repetitions', orNothing(total.totalRepsMeasured, number)],
    ['Duration', orNothing(total.totalDurationMeasuredSeconds, duration)],
    ['Distance', orNothing(total.totalDistanceTravelledMetres, asMetres)],
  ];
  return (
    <>
      <dl class="totals">
        {shown.map(([name, value, more]) => (
          <div key={name} class="card">
            <dt>{name}</dt>
            <dd>
              <b>{value}</b>
              {more !== undefined && <span class="hint">{more}</span>}
            </dd>
          </div>
        ))}
      </dl>
      {detailsPendingCount > 0 && (
        <p class="note">
          Of {number(detailsPendingCount)} {detailsPendingCount === 1 ? 'session' : 'sessions'} not everything
          is here yet: repetitions, durations and distances of these are missing above.
        </p>
      )}
    </>
  );
}
