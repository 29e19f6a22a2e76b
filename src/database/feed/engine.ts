/** Listening to the embedded engine. */

import type { EmbeddedPostgres } from '../embedded/embedded.ts';
import { type ChangeFeed, channel } from './changeFeed.ts';
import { openConnection } from './connection.ts';
import { keepListening } from './keepListening.ts';

/**
 * Listens to the embedded engine, in the process that runs it. Its one session does one thing at a time, so that a
 * heartbeat may wait for as long as somebody else's transaction is open; nothing can change meanwhile.
 */
export function listenToEngine({ connection, listeners }: EmbeddedPostgres): Promise<ChangeFeed> {
  return keepListening(async (hear, lost) => {
    const listener = (from: string, payload: string) => {
      if (from === channel) hear(payload);
    };
    listeners.add(listener);
    lost.signal.addEventListener('abort', () => listeners.delete(listener), { once: true });
    const client = await openConnection(connection, lost);
    await client.query(`LISTEN ${channel}`);
    // It has no logical decoding, so that everything is announced in this way.
    return { kind: 'notify', announce: (payload) => client.query(`NOTIFY ${channel}, '${payload}'`) };
    // What is announced comes with the reply to the commit, and so before anything else that is read in its one session.
  }, true);
}
