/** Change feeds for tests, among them one that tests control. */

import type { Change, ChangeFeed, ChangeListener, Table } from '../../src/database/feed/changeFeed.ts';
import { extensions } from '../../src/extensions/extensions.ts';

/** Reads announcements in the log of a database, if an extension does. */
export const readLog = extensions.find((extension) => extension.readLog)?.readLog;

/**
 * Creates a feed whose connection and announcements the test controls.
 * @param catchUp the optional method of `ChangeFeed`, as the test wants it.
 */
export function createFakeFeed(catchUp?: () => Promise<boolean>) {
  const listeners = new Set<ChangeListener>();
  let listening = true;
  const tell = (change: Change) => {
    for (const listener of listeners) listener(change);
  };
  const feed: ChangeFeed = {
    get listening() {
      return listening;
    },
    mode: 'notify',
    reconnects: 0,
    ...(catchUp && { catchUp }),
    subscribe(listener) {
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
      };
    },
    close: async () => {},
  };
  return {
    feed,
    followers: () => listeners.size,
    announce: (userId: number, table: Table = 'DttDevice') => tell({ kind: 'user', userId, table }),
    announceAll: (table?: Table) => tell({ kind: 'all', ...(table && { table }) }),
    lose() {
      listening = false;
      tell({ kind: 'all' });
    },
    /** Stops or begins listening without telling the subscribers. */
    falter(listens = false) {
      listening = listens;
    },
    regain() {
      listening = true;
      tell({ kind: 'all' });
    },
  };
}
