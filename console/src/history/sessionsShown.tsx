/** The statistics and the list of the sessions that are shown, or why there are none. */

import type { DttSessionFilter } from '../../generated/graphql.ts';
import { counted } from '../parts/counted.ts';
import { messageOf } from '../parts/loaded.tsx';
import { unknownCountOf } from '../parts/sums.ts';
import { Time } from '../parts/time.tsx';
import { change, type HistoryAddress, hrefOf } from './address.ts';
import type { Period } from './calendar.ts';
import { ChartCard } from './chartCard.tsx';
import { number } from './figures.ts';
import { rangeName } from './periodName.ts';
import type { Total } from './queries.ts';
import type { Between } from './range.ts';
import { SessionList } from './sessionList.tsx';
import { useStats } from './stats.ts';
import { Totals } from './totals.tsx';

interface SessionsShownProps {
  address: HistoryAddress;
  days: Between;
  /** The number of days. */
  length: number;
  by: Period;
  where: DttSessionFilter;
  /** The time of the latest of all sessions. */
  latest: string | null | undefined;
}

export function SessionsShown({ address, days, length, by, where, latest }: SessionsShownProps) {
  const result = useStats(where, by, length);
  const total = result.data?.total;
  const count = total?.sessionCount;
  const fileName = ['sessions', days.from, days.to].filter((part) => part !== undefined).join('-');
  return (
    <>
      <p role="status" class="history-said">
        {result.isPending && 'Loading…'}
        {total && !result.isPending && `${rangeName(days.from, days.to)}: ${summaryOf(total)}.`}
      </p>
      {result.error && (
        <p class="note bad" role="alert">
          {messageOf(result.error)}
        </p>
      )}
      {count === 0 && <NoSessionsShown address={address} latest={latest} />}
      {count !== 0 && (result.data || result.isPending) && (
        <div aria-busy={result.isPending}>
          <Totals total={total} />
          <ChartCard
            stats={result.data ?? { groups: [], by }}
            address={address}
            length={length}
            fileName={fileName}
            isPending={result.isPending}
          />
        </div>
      )}
      {count !== 0 && <SessionList address={address} where={where} fileName={fileName} />}
    </>
  );
}

/** For example `34 sessions, 29 passed, 2 not passed, 3 without a result`. */
function summaryOf(total: Total): string {
  const { sessionCount, passedSessionCount, failedSessionCount } = total;
  const unknown = unknownCountOf(total);
  const parts = [
    counted(sessionCount, 'session'),
    ...(sessionCount === 0
      ? []
      : [`${number(passedSessionCount)} passed`, `${number(failedSessionCount)} not passed`]),
    ...(unknown > 0 ? [`${number(unknown)} without a result`] : []),
  ];
  return parts.join(', ');
}

function NoSessionsShown({ address, latest }: Pick<SessionsShownProps, 'address' | 'latest'>) {
  const { trainer, program, passed } = address;
  const isFiltered = (trainer ?? program ?? passed) !== undefined;
  const all = change(address, { trainer: undefined, program: undefined, passed: undefined });
  return (
    <div class="card history-card">
      <p>
        No session fits {isFiltered ? 'these days and filters' : 'these days'}.
        {latest != null && (
          <>
            {' '}
            Your latest was on <Time at={latest} />.
          </>
        )}
      </p>
      <p class="history-choices">
        {isFiltered && <a href={hrefOf(all)}>Without filters</a>}
        {address.range !== 'all' && <a href={hrefOf({ ...all, range: 'all' })}>All sessions</a>}
      </p>
    </div>
  );
}
