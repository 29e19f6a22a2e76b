/** The view of the history: statistics of the sessions over time, and the list of sessions. */

import { useEffect, useMemo, useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { useLive } from '../api/useLive.ts';
import { messageOf } from '../parts/loaded.tsx';
import { View } from '../parts/view.tsx';
import { base } from '../paths.ts';
import { filterOf, readAddress } from './address.ts';
import { type Day, dayOf } from './calendar.ts';
import { Filters } from './filters.tsx';
import { remember } from './lastAddress.ts';
import {
  historyCounts,
  historyFigures,
  historyPrograms,
  historySessions,
  historyTrainers,
} from './queries.ts';
import { choosePeriod, daysOf, lengthOf } from './range.ts';
import { pageVariables } from './sessionList.tsx';
import { SessionsShown } from './sessionsShown.tsx';
import { statsVariables } from './stats.ts';
import './history.css';

export function History() {
  const { path, query } = useLocation();
  const today = useToday();
  const address = useMemo(() => readAddress(query), [query]);
  // On the way to another view, this one is rendered once more, with the address of the other.
  useEffect(() => {
    if (path === `${base}/history`) remember(address);
  }, [path, address]);
  const programs = useLive(historyPrograms, {});
  const trainers = useLive(historyTrainers, {});
  const extent = programs.data?.dttSessionStats?.total;
  const days = daysOf(address.range, today);
  // The length of an open range is known once the times of the first and the last session are.
  const length = lengthOf(days, extent ?? {}) ?? (programs.isPending ? undefined : 1);
  const where = filterOf(days, address);
  const by = length === undefined ? undefined : choosePeriod(length, address.by);
  const sources = [
    ...(by && length !== undefined
      ? [historyCounts, historyFigures].map((document) => ({
          document,
          variables: statsVariables(where, by, length),
        }))
      : []),
    { document: historySessions, variables: pageVariables(where, address) },
    { document: historyPrograms, variables: {} },
    { document: historyTrainers, variables: {} },
  ];
  return (
    <View title="History" sources={sources}>
      {programs.error && (
        <p class="note bad" role="alert">
          {messageOf(programs.error)}
        </p>
      )}
      {extent?.sessionCount === 0 ? (
        <NoSessionsYet />
      ) : (
        <>
          <Filters address={address} days={days} programs={programs.data} trainers={trainers.data} />
          {length === undefined || by === undefined ? (
            <p class="hint history-wait">Loading…</p>
          ) : (
            <SessionsShown
              address={address}
              days={days}
              length={length}
              by={by}
              where={where}
              latest={extent?.lastSessionAt}
            />
          )}
        </>
      )}
    </View>
  );
}

const NoSessionsYet = () => (
  <div class="card history-card">
    <h2>There are no sessions yet</h2>
    <p>
      Each training with one of your trainers appears here by itself: how often you trained, what was passed,
      and how it went over time.
    </p>
    <p class="history-choices">
      <a href={`${base}/programs`}>Choose a program</a>
      <a href={base}>See your trainers</a>
    </p>
  </div>
);

/** The current day, which changes at midnight. */
function useToday(): Day {
  const [today, setToday] = useState(() => dayOf(new Date()) ?? '');
  useEffect(() => {
    const timer = setInterval(() => setToday((current) => dayOf(new Date()) ?? current), 10_000);
    return () => clearInterval(timer);
  }, []);
  return today;
}
