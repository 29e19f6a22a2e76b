/** The latest sessions with a program. */

import type { ProgramQuery } from '../../generated/graphql.ts';
import { Passed } from '../parts/badge.tsx';
import { numberText } from '../parts/number.ts';
import { passedText, pointsText } from '../parts/sums.ts';
import { Time } from '../parts/time.tsx';
import { base } from '../paths.ts';

type SessionList = NonNullable<NonNullable<ProgramQuery['dttTemplate']>['sessions']>;

interface LatestSessionsProps {
  list: SessionList;
  /** The id of the program. */
  databaseId: number;
}

export function LatestSessions({ list: { nodes, totalCount }, databaseId }: LatestSessionsProps) {
  return (
    <>
      <table class="program-sessions" aria-labelledby="latest">
        <thead>
          <tr>
            <th scope="col">When</th>
            <th scope="col">Result</th>
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
          {nodes.map((session) => (
            <Row key={session.id} session={session} />
          ))}
        </tbody>
      </table>
      {totalCount > nodes.length && (
        <p>
          <a href={`${base}/history?program=${databaseId}`}>View all {numberText(totalCount)} sessions</a>
        </p>
      )}
    </>
  );
}

function Row({ session }: { session: SessionList['nodes'][number] }) {
  const { databaseId, createdAt, passed, trainer, segments } = session;
  return (
    <tr>
      <th scope="row">
        <a href={`${base}/history/${databaseId}`}>
          <Time at={createdAt} />
        </a>
      </th>
      <td>
        <Passed passed={passed} />
      </td>
      <td class="free-text">{trainer?.serialNumber ? `Trainer ${trainer.serialNumber}` : '–'}</td>
      <td class="number" data-label="Segments">
        {passedText(segments)}
      </td>
      <td class="number" data-label="Points">
        {pointsText(segments)}
      </td>
    </tr>
  );
}
