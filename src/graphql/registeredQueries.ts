/**
 * The queries that clients have registered by their hashes (Apollo's automatic persisted queries), for each user those
 * that are theirs: what one has registered tells another nothing.
 */

export interface RegisteredQueries {
  /** The query that the user registered under the hash, if it is not forgotten. */
  find(userId: number, hash: string): string | undefined;
  add(userId: number, hash: string, query: string): void;
}

export interface RegistryLimits {
  readonly perUser: { readonly queries: number; readonly bytes: number };
  /** What all may take. Users with the same frontend share the texts of its queries. */
  readonly bytes: number;
}

/** Many times what a frontend has. */
const usualBounds: RegistryLimits = {
  perUser: { queries: 1_000, bytes: 4 * 1024 * 1024 },
  bytes: 64 * 1024 * 1024,
};

/** What a registration takes beside the text that it stands for, in bytes: measured roughly, on the high side. */
const overhead = 200;

interface Query {
  readonly text: string;
  readonly bytes: number;
  /** How many users have registered it. */
  users: number;
}

/** What a user has registered, what was used last at the end. */
interface Owner {
  readonly queries: Map<string, Query>;
  bytes: number;
}

/** Forgets what was not used for longest: of a user who has too many, or of the user who came last the longest ago. */
export function createRegisteredQueries(most: RegistryLimits = usualBounds): RegisteredQueries {
  const queries = new Map<string, Query>();
  /** Those who came last are at the end. */
  const owners = new Map<number, Owner>();
  let bytes = 0;

  function forgetOldest(userId: number, owner: Owner): void {
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
      // One that is too large for its user would have everything else of theirs forgotten.
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
        forgetOldest(userId, owner);
      while (bytes > most.bytes) {
        const [oldest] = owners;
        if (!oldest) break;
        forgetOldest(...oldest);
      }
    },
  };
}

/** A map has its entries in the order in which they were set. */
function toEnd<Key, Value>(map: Map<Key, Value>, key: Key, value: Value): void {
  map.delete(key);
  map.set(key, value);
}
