/** A note that says when the connection for live updates is lost, and when it is back. */

import { useEffect, useState } from 'preact/hooks';
import type { Connection } from '../api/client.ts';

/** In milliseconds: how long the note says that the connection is back. */
const reconnectedNoteTime = 6_000;

export function ConnectionNote({ connection }: { connection: Connection }) {
  const { state } = connection;
  const [wasLost, setWasLost] = useState(false);
  useEffect(() => {
    if (state === 'lost' || state === 'postponed') setWasLost(true);
    if (state !== 'open') return;
    const timer = setTimeout(() => setWasLost(false), reconnectedNoteTime);
    return () => clearTimeout(timer);
  }, [state]);
  return (
    <div role="status" class="connection">
      {state === 'lost' && (
        <p class="note bad">
          The gateway cannot be reached. The page shows what it had before, and keeps trying to connect.
        </p>
      )}
      {state === 'postponed' && (
        <p class="note bad">
          The gateway accepts no connection for now: {connection.reason}. The page shows what it had before,
          and keeps trying to connect.
        </p>
      )}
      {state === 'open' && wasLost && <p class="note good">Connected again. The page is up to date.</p>}
    </div>
  );
}
