/**
 * The queries that clients have registered by their hashes (Apollo's automatic persisted queries). Each user finds only
 * their own.
 */

export interface RegisteredQueries {
  /** The query that the user registered under the hash; undefined if there is none, or it was evicted. */
  find(userId: number, hash: string): string | undefined;
  add(userId: number, hash: string, query: string): void;
}

export interface RegistryLimits {
  readonly perUser: { readonly queries: number; readonly bytes: number };
  /** How much memory the queries of all users may take. A text that several users registered is stored once. */
  readonly bytes: number;
}

/** Many times what a frontend needs. */
const usualBounds: RegistryLimits = {
  perUser: { queries: 1_000, bytes: 4 * 1024 * 1024 },
  bytes: 64 * 1024 * 1024,
};

/** How much memory a registration takes in addition to its text, in bytes: a rough measure, on the high side. */
const overhead = 200;

interface Query {
  readonly text: string;
  readonly bytes: number;
  /** How many users have registered it. */
  users: number;
}

/** The queries that a user has registered, the least recently used first. */
interface Owner {
  readonly queries: Map<string, Query>;
  bytes: number;
}

/**
 * Evicts the least recently used query: of a user who has too many, or, where all users together have too many, of the user
 * whose last request is the oldest.
 */
export function createRegisteredQueries(most: RegistryLimits = usualBounds): RegisteredQueries {
  const queries = new Map<string, Query>();
  /** By user id, the user whose last request is the oldest first. */
  const owners = new Map<number, Owner>();
  let bytes = 0;

  function evictOldest(userId: number, owner: Owner): void {
    for (const [hash, query] of owner.queries) {
      owner.queries.delete(hash);
      owner.bytes -= query.bytes;
      bytes -= overhead;
      query.users--;
      if (query.users === 0 && queries.delete(hash)) bytes -= query.bytes;
      break;
    }
    if (owner.queries.size === 0) owners.delete(userId);
  }

  function found(hash: string, text: string): Query {
    const known = queries.get(hash);
    if (known) return known;
    const query = { text, bytes: 2 * text.length, users: 0 };
    queries.set(hash, query);
    bytes += query.bytes;
    return query;
  }

  return {
    find(userId, hash) {
      const owner = owners.get(userId);
      const query = owner?.queries.get(hash);
      if (!owner || !query) return undefined;
      toEnd(owners, userId, owner);
      toEnd(owner.queries, hash, query);
      return query.text;
    },

    add(userId, hash, text) {
      // A query larger than the limit would evict all others of its user.
      if (2 * text.length > most.perUser.bytes) return;
      const owner = owners.get(userId) ?? { queries: new Map(), bytes: 0 };
      toEnd(owners, userId, owner);
      const query = found(hash, text);
      const isNew = !owner.queries.has(hash);
      toEnd(owner.queries, hash, query);
      if (isNew) {
        owner.bytes += query.bytes;
        bytes += overhead;
        query.users++;
      }
      while (owner.queries.size > most.perUser.queries || owner.bytes > most.perUser.bytes)
        evictOldest(userId, owner);
      while (bytes > most.bytes) {
        const [oldest] = owners;
        if (!oldest) break;
        evictOldest(...oldest);
      }
    },
  };
}

/** Makes an entry the most recently used one: a map has its entries in the order in which they were added. */
function toEnd<Key, Value>(map: Map<Key, Value>, key: Key, value: Value): void {
  map.delete(key);
  map.set(key, value);
}
