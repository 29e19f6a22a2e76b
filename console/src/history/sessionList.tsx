/** The sessions themselves, a page at a time. */

import { useRef } from 'preact/hooks';
import type { DttSessionFilter } from '../../generated/graphql.ts';
import { useLive } from '../api/useLive.ts';
import { Passed } from '../parts/badge.tsx';
import { Empty, Loaded } from '../parts/loaded.tsx';
import { Paging, pageOf } from '../parts/paging.tsx';
import { passedText, pointsText } from '../parts/sums.ts';
import { Time } from '../parts/time.tsx';
import { type HistoryAddress, hrefOf } from './address.ts';
import { programName, trainerName } from './names.ts';
import { historySessions, type Session } from './queries.ts';
import { SessionsCsv } from './sessionsCsv.tsx';

/** What a page is asked with. */
export const pageVariables = (where: DttSessionFilter, { after, before }: HistoryAddress) => ({
  where,
  ...pageOf({ ...(after !== undefined && { after }), ...(before !== undefined && { before }) }),
});

interface SessionListProps {
  address: HistoryAddress;
  where: DttSessionFilter;
  /** The days that are shown, for the name of a file. */
  fileName: string;
}

export function SessionList({ address, where, fileName }: SessionListProps) {
  const result = useLive(historySessions, pageVariables(where, address));
  const heading = useRef<HTMLHeadingElement>(null);
  const isBehind = (address.after ?? address.before) !== undefined;
  return (
    <section class="card history-card" aria-labelledby="sessions">
      <h2 id="sessions" ref={heading} tabIndex={-1}>
        Sessions
      </h2>
      <Loaded result={result}>
        {({ dttSessions }) =>
          dttSessions && (
            <div aria-busy={result.isPending}>
              {dttSessions.nodes.length === 0 ? (
                <Empty>There are no sessions {isBehind ? 'further on' : 'to list'}.</Empty>
              ) : (
                <SessionTable sessions={dttSessions.nodes} />
              )}
              <Paging of={dttSessions} what="session" heading={heading} isPending={result.isPending} />
              <SessionsCsv
                where={where}
                page={dttSessions}
                fileName={fileName}
                isPending={result.isPending}
              />
            </div>
          )
        }
      </Loaded>
      {result.error && isBehind && (
        <p>
          <a href={hrefOf({ ...address, after: undefined, before: undefined })}>To the newest sessions</a>
        </p>
      )}
    </section>
  );
}

function SessionTable({ sessions }: { sessions: readonly Session[] }) {
  return (
    <table class="history-sessions">
      <thead>
        <tr>
          <th scope="col">When</th>
          <th scope="col">Result</th>
          <th scope="col">Program</th>
          <th scope="col">Trainer</th>
          <th scope="col" class="number">
            Segments passed
          </th>
          <th scope="col" class="number">
            Points
          </th>
        </tr>
      </thead>
      <tbody>
        {sessions.map((session) => (
          <SessionRow key={session.id} session={session} />
        ))}
      </tbody>
    </table>
  );
}

function SessionRow({ session }: { session: Session }) {
  const { databaseId, createdAt, name, passed, template, templateId, trainer, trainerId, segments } = session;
  return (
    <tr>
      <th scope="row">
        <a href={`/console/history/${databaseId}`}>
          <Time at={createdAt} />
        </a>
        {name != null && name !== '' && <span class="hint"> {name}</span>}
      </th>
      <td>
        <Passed passed={passed} />
      </td>
      <td>{programName(template, templateId)}</td>
      <td>{trainerName(trainer, trainerId)}</td>
      <td class="number" data-label="Segments passed">
        {passedText(segments)}
      </td>
      <td class="number" data-label="Points">
        {pointsText(segments)}
      </td>
    </tr>
  );
}
