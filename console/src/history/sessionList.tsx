/** The sessions themselves, a page at a time. */

import type { DttSessionFilter } from '../../generated/graphql.ts';
import { useLive } from '../api/useLive.ts';
import { Empty, Loaded } from '../parts/loaded.tsx';
import { Time } from '../parts/time.tsx';
import { type HistoryAddress, hrefOf } from './address.ts';
import { passedSegments, pointsOf } from './exported.ts';
import { nothing, number, orNothing } from './figures.ts';
import { programName, trainerName } from './names.ts';
import { historySessions, type Session, type SessionPage } from './queries.ts';
import { Result } from './result.tsx';
import { SessionsCsv } from './sessionsCsv.tsx';

const pageSize = 20;

/** What a page is asked with. */
export function pageVariables(where: DttSessionFilter, { after, before }: HistoryAddress) {
  if (before !== undefined) return { where, last: pageSize, before };
  return { where, first: pageSize, ...(after !== undefined && { after }) };
}

interface SessionListProps {
  address: HistoryAddress;
  where: DttSessionFilter;
  /** The days that are shown, for the name of a file. */
  fileName: string;
}

export function SessionList({ address, where, fileName }: SessionListProps) {
  const result = useLive(historySessions, pageVariables(where, address));
  const isBehind = (address.after ?? address.before) !== undefined;
  return (
    <section class="card" aria-labelledby="sessions">
      <h2 id="sessions" tabIndex={-1}>
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
              <Pages address={address} page={dttSessions} />
              <SessionsCsv where={where} page={dttSessions} fileName={fileName} />
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
    <table class="sessions">
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
        <Result passed={passed} />
      </td>
      <td>{programName(template, templateId)}</td>
      <td>{trainerName(trainer, trainerId)}</td>
      <td class="number" data-label="Segments passed">
        {segments.length === 0 ? nothing : `${number(passedSegments(session))} of ${number(segments.length)}`}
      </td>
      <td class="number" data-label="Points">
        {orNothing(pointsOf(session), number)}
      </td>
    </tr>
  );
}

function Pages({ address, page }: { address: HistoryAddress; page: SessionPage }) {
  const { startCursor, endCursor, hasNextPage, hasPreviousPage } = page.pageInfo;
  const isBehind = (address.after ?? address.before) !== undefined;
  // On the way back the list ends here where the pages before began.
  const newer = hasPreviousPage && startCursor != null;
  const older = hasNextPage && endCursor != null;
  if (!newer && !older && !isBehind) return null;
  const to = (cursors: Pick<HistoryAddress, 'after' | 'before'>) =>
    hrefOf({ ...address, after: undefined, before: undefined, ...cursors });
  return (
    <nav class="choices pages" aria-label="Pages of sessions">
      {isBehind && <a href={to({})}>Newest</a>}
      {newer && <a href={to({ before: startCursor })}>Newer</a>}
      {older && <a href={to({ after: endCursor })}>Older</a>}
      <span class="hint">
        {number(page.nodes.length)} of {number(page.totalCount)} sessions
      </span>
    </nav>
  );
}
