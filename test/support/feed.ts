/** A change feed for tests that does what the test says. */

import type { Change, ChangeFeed, ChangeListener, Table } from '../../src/database/feed/changeFeed.ts';

/**
 * A feed whose connection and announcements are the test's.
 * @param catchUp what finds out whether everything is heard; without it nothing can be read before it is.
 */
export function createFakeFeed(catchUp?: () => Promise<boolean>) {
  const listeners = new Set<ChangeListener>();
  let listening = true;
  const doubted = new Set<number>();
  const tell = (change: Change) => {
    for (const listener of listeners) listener(change);
  };
  const feed: ChangeFeed = {
    get listening() {
      return listening;
    },
    kind: 'notify',
    mayCache: (userId) => listening && !doubted.has(userId),
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
    /** A change of theirs is known of that snapshots do not see yet. It is announced once they do. */
    doubt: (userId: number) => doubted.add(userId),
    believe: (userId: number) => doubted.delete(userId),
    lose() {
      listening = false;
      tell({ kind: 'all' });
    },
    /** Stops to listen, or begins to, without having told anybody yet. */
    falter(listens = false) {
      listening = listens;
    },
    regain() {
      listening = true;
      tell({ kind: 'all' });
    },
  };
}
