/** A note, once for the whole page, that says when it gets no live updates, and when it does again. */

import { useEffect, useState } from 'preact/hooks';
import type { Connection } from '../api/client.ts';

/** In milliseconds: how long the note says that the connection is back. */
const reconnectedNoteTime = 6_000;

interface ConnectionNoteProps {
  connection: Connection;
  /** Why queries fail for now, although the gateway is reachable. */
  outage: string | undefined;
}

export function ConnectionNote({ connection, outage }: ConnectionNoteProps) {
  const { state } = connection;
  const problem = problemOf(connection, outage);
  const [hadProblem, setHadProblem] = useState(false);
  useEffect(() => {
    if (problem !== undefined) setHadProblem(true);
    if (problem !== undefined || state !== 'open') return;
    const timer = setTimeout(() => setHadProblem(false), reconnectedNoteTime);
    return () => clearTimeout(timer);
  }, [problem, state]);
  return (
    <div role="status" class="connection">
      {problem !== undefined && (
        <p class="note bad">{problem} The page shows what it had before, and keeps trying.</p>
      )}
      {problem === undefined && state === 'open' && hadProblem && (
        <p class="note good">Connected again. The page is up to date.</p>
      )}
    </div>
  );
}

function problemOf(connection: Connection, outage: string | undefined): string | undefined {
  if (connection.state === 'lost') return 'The gateway cannot be reached.';
  if (connection.state === 'postponed')
    return `The gateway accepts no connection for now: ${connection.reason}.`;
  return outage && `The gateway cannot give all data for now: ${outage}.`;
}
