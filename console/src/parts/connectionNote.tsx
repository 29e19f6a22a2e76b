/** Says when changes are not heard of, and when they are again. */

import { useEffect, useState } from 'preact/hooks';
import type { Connection } from '../api/client.ts';

/** In milliseconds: how long it is said that all is well again. */
const relief = 6_000;

export function ConnectionNote({ connection }: { connection: Connection }) {
  const { state } = connection;
  const [wasLost, setWasLost] = useState(false);
  useEffect(() => {
    if (state === 'lost' || state === 'postponed') setWasLost(true);
    if (state !== 'open') return;
    const timer = setTimeout(() => setWasLost(false), relief);
    return () => clearTimeout(timer);
  }, [state]);
  return (
    <div role="status" class="connection">
      {state === 'lost' && (
        <p class="note bad">
          The gateway cannot be reached. What you see is how things were; it is tried again and again.
        </p>
      )}
      {state === 'postponed' && (
        <p class="note bad">
          The gateway takes no connection for now: {connection.reason}. What you see is how things were; it is
          tried again and again.
        </p>
      )}
      {state === 'open' && wasLost && (
        <p class="note good">Connected again. What you see is how things are.</p>
      )}
    </div>
  );
}
