/** The view of all lock sessions, each as a bar of time, and of the lock templates. */

import type { ResultOf } from '@graphql-typed-document-node/core';
import { useRef } from 'preact/hooks';
import { graphql } from '../api/graphql.ts';
import { type LiveResult, useLive } from '../api/useLive.ts';
import { useAddress } from '../parts/address.ts';
import { counted } from '../parts/counted.ts';
import { Figures } from '../parts/facts.tsx';
import { Empty, Loaded, messageOf } from '../parts/loaded.tsx';
import { firstPage, Paging, pageOf } from '../parts/paging.tsx';
import { duration } from '../parts/time.tsx';
import { View } from '../parts/view.tsx';
import { Filters, filterCounts, whereOf } from './filters.tsx';
import { Legend } from './lockBar.tsx';
import { SessionCard } from './sessionCard.tsx';
import { LockTemplates, lockTemplates } from './templates.tsx';
import './locks.css';

const lockSessions = graphql(`
  query LockSessions($where: LockSessionFilter, $first: Int, $after: String, $last: Int, $before: String) {
    lockSessions(where: $where, first: $first, after: $after, last: $last, before: $before) {
      totalCount
      pageInfo {
        hasNextPage
        hasPreviousPage
        startCursor
        endCursor
      }
      nodes {
        id
        databaseId
        name
        lockState
        isActive
        startedAt
        endsAt
        durationSeconds
        segments {
          id
          createdAt
          type
          isLocked
        }
      }
    }
  }
`);

const totals = graphql(`
  query LockSessionTotals($where: LockSessionFilter) {
    lockSessionStats(where: $where) {
      total {
        sessionCount
        activeSessionCount
        totalDurationSeconds
        averageDurationSeconds
      }
    }
  }
`);

export function Locks() {
  const { query } = useAddress();
  const where = whereOf(query);
  const page = { where, ...pageOf(query) };
  const sessions = useLive(lockSessions, page);
  const stats = useLive(totals, { where });
  const templates = useLive(lockTemplates, {});
  // This query comes last, since it takes longest.
  const counts = useLive(filterCounts, {});
  const sources = [
    { document: lockSessions, variables: page },
    { document: totals, variables: { where } },
    { document: filterCounts, variables: {} },
    { document: lockTemplates, variables: {} },
  ];
  return (
    <View title="Locks" sources={sources}>
      <Filters result={counts} />
      {stats.error && (
        <p class="note bad" role="alert">
          {messageOf(stats.error)}
        </p>
      )}
      <Totals total={stats.data?.lockSessionStats?.total} />
      <div class="locks">
        <Sessions result={sessions} isFiltered={Object.keys(where).length > 0} />
        {/* In a narrow page the sessions are above the templates, and would push them down when they arrive. */}
        {(sessions.data ?? sessions.error) !== undefined && (
          <section aria-labelledby="lock-templates">
            <h2 id="lock-templates">Templates</h2>
            <LockTemplates result={templates} />
          </section>
        )}
      </div>
    </View>
  );
}

type Total = NonNullable<ResultOf<typeof totals>['lockSessionStats']>['total'];

/** @param total undefined while it is unknown; the names of the figures are shown all the same, so that nothing moves. */
function Totals({ total }: { total: Total | undefined }) {
  return (
    <Figures
      label="All sessions together"
      of={[
        ['Sessions', total?.sessionCount ?? nothing],
        ['Running now', total?.activeSessionCount ?? nothing],
        ['Planned time in total', asDuration(total?.totalDurationSeconds)],
        ['Planned time on average', asDuration(total?.averageDurationSeconds)],
      ]}
    />
  );
}

const nothing = '–';

const asDuration = (seconds: number | null | undefined) => (seconds == null ? nothing : duration(seconds));

interface SessionsProps {
  result: LiveResult<ResultOf<typeof lockSessions>>;
  isFiltered: boolean;
}

function Sessions({ result, isFiltered }: SessionsProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  const { query, hrefWith } = useAddress();
  const found = result.data?.lockSessions;
  return (
    <section aria-labelledby="lock-sessions">
      <h2 id="lock-sessions" ref={heading} tabIndex={-1}>
        Sessions
      </h2>
      <p role="status" class="hidden">
        {found && !result.isPending && counted(found.totalCount, 'session')}
      </p>
      <Loaded result={result}>
        {({ lockSessions }) =>
          lockSessions &&
          (lockSessions.totalCount === 0 ? (
            <Empty>{isFiltered ? noMatch : noSessions}</Empty>
          ) : (
            <div aria-busy={result.isPending}>
              <Legend />
              <ul class="lock-sessions">
                {lockSessions.nodes.map((session) => (
                  <li key={session.id} class="card">
                    <SessionCard session={session} />
                  </li>
                ))}
              </ul>
              <Paging of={lockSessions} what="session" heading={heading} isPending={result.isPending} />
            </div>
          ))
        }
      </Loaded>
      {result.error && (query.after ?? query.before) !== undefined && (
        <p>
          <a href={hrefWith(firstPage)}>First page</a>
        </p>
      )}
    </section>
  );
}

const noSessions = 'No lock session yet. Each is here as a bar of time, newest first, as soon as it begins.';
const noMatch = 'No lock session is like this. Choose other filters above, or clear them.';
