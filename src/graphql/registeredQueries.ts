/**
 * The queries that clients have registered by their hashes (Apollo's automatic persisted queries). Each user finds only
 * their own. Those that were not used for longest are evicted: of a user who has too many, or, where all users together have
 * too many, all of the user whose last request is the oldest.
 */

import { LRUCache } from 'lru-cache';

export interface RegisteredQueries {
  /** The query that the user registered under the hash; undefined if there is none, or it was evicted. */
  find(userId: number, hash: string): string | undefined;
  add(userId: number, hash: string, query: string): void;
}

/** How much memory the queries of one user, and those of all, may take, in bytes. It is many times what a frontend needs. */
const usualBounds = { perUser: 4 * 1024 * 1024, all: 64 * 1024 * 1024 };

/** How much memory a query takes: a rough measure, on the high side. */
const memoryOf = (query: string) => 200 + 2 * query.length;

export function createRegisteredQueries(most = usualBounds): RegisteredQueries {
  const users = new LRUCache<number, LRUCache<string, string>>({
    maxSize: most.all,
    // Never 0, which the cache does not take.
    sizeCalculation: ({ calculatedSize }) => calculatedSize + 1,
  });
  return {
    find: (userId, hash) => users.get(userId)?.get(hash),
    add(userId, hash, query) {
      const own =
        users.get(userId) ??
        new LRUCache<string, string>({ maxSize: most.perUser, sizeCalculation: memoryOf });
      own.set(hash, query);
      // Added again, since the cache measures an entry only when it is new.
      users.delete(userId);
      users.set(userId, own);
    },
  };
}
