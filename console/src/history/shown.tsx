/** What there is of the days and filters that are chosen. */

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

interface ShownProps {
  address: HistoryAddress;
  days: Between;
  /** How many days that is. */
  length: number;
  by: Period;
  where: DttSessionFilter;
  /** When the latest of all sessions took place. */
  latest: string | null | undefined;
}

export function Shown({ address, days, length, by, where, latest }: ShownProps) {
  const result = useStats(where, by, length);
  const total = result.data?.total;
  const count = total?.sessionCount;
  const fileName = ['sessions', days.from, days.to].filter((part) => part !== undefined).join('-');
  return (
    <>
      <p role="status" class="history-said">
        {result.isPending && 'Loading…'}
        {total && !result.isPending && `${rangeName(days.from, days.to)}: ${saidOf(total)}.`}
      </p>
      {result.error && (
        <p class="note bad" role="alert">
          {messageOf(result.error)}
        </p>
      )}
      {count === 0 && <NothingShown address={address} latest={latest} />}
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

/** For example `34 sessions, 29 passed, 2 not passed, 3 not known`. */
function saidOf(total: Total): string {
  const { sessionCount, passedSessionCount, failedSessionCount } = total;
  const unknown = unknownCountOf(total);
  const parts = [
    counted(sessionCount, 'session'),
    ...(sessionCount === 0
      ? []
      : [`${number(passedSessionCount)} passed`, `${number(failedSessionCount)} not passed`]),
    ...(unknown > 0 ? [`${number(unknown)} not known`] : []),
  ];
  return parts.join(', ');
}

function NothingShown({ address, latest }: Pick<ShownProps, 'address' | 'latest'>) {
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
