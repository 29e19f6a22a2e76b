/** Says when changes are not heard of. */

import type { Connection } from '../api/client.ts';

export function ConnectionNote({ connection }: { connection: Connection }) {
  return (
    <div role="status" class="connection">
      {connection === 'lost' && (
        <p class="note bad">
          The gateway cannot be reached. What you see is how things were; it is tried again and again.
        </p>
      )}
    </div>
  );
}
