/** Listens to the embedded engine. */

import type { EmbeddedPostgres } from '../embedded/embedded.ts';
import { type ChangeFeed, channel } from './changeFeed.ts';
import { type FeedReport, keepListening } from './keepListening.ts';
import { openConnection } from './server.ts';

/**
 * Listens to the embedded engine, in the process that runs it. The engine has one session, so a heartbeat may wait for as
 * long as another client's transaction is open; nothing else can change in the meantime.
 */
export function listenToEngine(
  { connection, listeners }: EmbeddedPostgres,
  report?: FeedReport,
): Promise<ChangeFeed> {
  return keepListening(
    async (hear, lost) => {
      const listener = (from: string, payload: string) => {
        if (from === channel) hear(payload);
      };
      listeners.add(listener);
      lost.signal.addEventListener('abort', () => listeners.delete(listener), { once: true });
      const client = await openConnection(connection, lost);
      await client.query(`LISTEN ${channel}`);
      // The engine has no logical decoding: everything is announced by NOTIFY.
      return { kind: 'notify', announce: (payload) => client.query(`NOTIFY ${channel}, '${payload}'`) };
      // Announcements arrive with the reply to the commit, and so before anything that is read afterwards in the one session.
    },
    { isHeardFirst: true, report },
  );
}
