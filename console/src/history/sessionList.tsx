/** The list of sessions, a page at a time. */

import { useEffect, useRef, useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import type { DttSessionFilter } from '../../generated/graphql.ts';
import { type LiveResult, useLive } from '../api/useLive.ts';
import { Passed } from '../parts/badge.tsx';
import { Empty, Loaded } from '../parts/loaded.tsx';
import { Paging, pageOf } from '../parts/paging.tsx';
import { passedText, pointsText } from '../parts/sums.ts';
import { Time } from '../parts/time.tsx';
import { base } from '../paths.ts';
import { change, type HistoryAddress, hrefOf } from './address.ts';
import { programName, trainerName } from './names.ts';
import { historySessions, type Session } from './queries.ts';
import { SessionsCsv } from './sessionsCsv.tsx';

/** The variables of a page of the list. */
export const pageVariables = (where: DttSessionFilter, { after, before }: HistoryAddress) => ({
  where,
  ...pageOf({ ...(after !== undefined && { after }), ...(before !== undefined && { before }) }),
});

interface SessionListProps {
  address: HistoryAddress;
  where: DttSessionFilter;
  /** The name of an exported file, without the extension. */
  fileName: string;
}

export function SessionList({ address, where, fileName }: SessionListProps) {
  const result = useLive(historySessions, pageVariables(where, address));
  const heading = useRef<HTMLHeadingElement>(null);
  const isLaterPage = (address.after ?? address.before) !== undefined;
  const wasReplaced = useFirstPageInstead(address, result.error);
  return (
    <section class="card history-card" aria-labelledby="sessions">
      <h2 id="sessions" ref={heading} tabIndex={-1}>
        Sessions
      </h2>
      <p role="status" class={wasReplaced ? 'note' : 'hidden'}>
        {wasReplaced &&
          'The page of the address was one of other days, or of another time zone: this is the first one.'}
      </p>
      <Loaded result={result}>
        {({ dttSessions }) =>
          dttSessions && (
            <div aria-busy={result.isPending}>
              {dttSessions.nodes.length === 0 ? (
                <Empty>There are no sessions {isLaterPage ? 'further on' : 'to list'}.</Empty>
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
    </section>
  );
}

/**
 * Goes to the first page if the cursor in the address is of another list. A range such as "90 days" is another list on the next
 * day and in another time zone, and a cursor is valid for one list only.
 * @returns whether the page that is shown was reached in this way.
 */
function useFirstPageInstead(address: HistoryAddress, error: LiveResult<unknown>['error']): boolean {
  const { route } = useLocation();
  const first = hrefOf(change(address, {}));
  const [replaced, setReplaced] = useState<string>();
  const isOfOtherList = error?.graphQLErrors.some(({ extensions: { argument } }) =>
    ['after', 'before'].includes(String(argument)),
  );
  useEffect(() => {
    if (!isOfOtherList) return;
    setReplaced(first);
    route(first, true);
  }, [isOfOtherList, first]);
  return hrefOf(address) === replaced;
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
      <th scope="row" class="free-text">
        <a href={`${base}/history/${databaseId}`}>
          <Time at={createdAt} />
        </a>
        {name != null && name !== '' && <span class="hint"> {name}</span>}
      </th>
      <td>
        <Passed passed={passed} />
      </td>
      <td class="free-text">{programName(template, templateId)}</td>
      <td class="free-text">{trainerName(trainer, trainerId)}</td>
      <td class="number" data-label="Segments passed">
        {passedText(segments)}
      </td>
      <td class="number" data-label="Points">
        {pointsText(segments)}
      </td>
    </tr>
  );
}
