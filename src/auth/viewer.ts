/** Authentication: finds the viewer, the user whose token came with a request. The viewer is the only way into the data. */

import DataLoader from 'dataloader';
import { LRUCache } from 'lru-cache';
import { type ChangeFeed, concernsTokens } from '../database/feed/changeFeed.ts';
import type { Sql } from '../database/reader/sql.ts';
import type { TokenProblem } from '../errors.ts';
import { digestOf, type FoundToken, findTokens, isToken } from './tokens.ts';

export interface Viewer {
  readonly id: number;
  /** The id of a token of the gateway's own; undefined for a token of the upstream's, which has none here. */
  readonly tokenId: number | undefined;
  /** Aborted when the token has ended, if that may be known before its validity is asked again. */
  readonly ended?: AbortSignal;
}

export interface Viewers {
  /**
   * The viewer, if the token was looked up before and nothing has changed since.
   * @param connection what the header came by: most clients send the same one with each of their requests.
   */
  known(header: string | undefined, connection?: object): Viewer | undefined;
  /** The viewer of an `Authorization` header, or null when it is missing, malformed, unknown or revoked. */
  authenticate(header: string | undefined): Promise<Viewer | null>;
  /** Whether the token of a viewer is still valid. */
  isValid(viewer: Viewer): Promise<boolean>;
}

/**
 * Finds out whether the viewer's token has ended while the body of a request arrived. The token was valid when the head arrived,
 * and is looked up again only if the body took long.
 * @param began when reading the body began, by `performance.now`.
 */
export type HasEnded = (viewer: Viewer, began: number) => Promise<boolean>;

/** How stale a token's last-used time may be, in milliseconds. A write for each request would cost more than it is worth. */
const lastUsedPrecision = 60_000;

/** How many tokens are cached. */
const maxKnown = 10_000;

/** How many tokens one statement looks up. */
const maxLookUps = 500;

interface Known {
  readonly viewer: Viewer & { readonly tokenId: number };
  /** When the token's last-used time was written, in milliseconds since the epoch. */
  noted: number;
}

/**
 * Tokens are cached, by their digests, only while the change feed would announce that one is revoked.
 * @param maxAge how long a token is cached, in seconds, whatever the feed announces.
 * @param onFound called with each user whose token was read from the database.
 */
export function createViewers(
  sql: Sql,
  feed: ChangeFeed,
  maxAge: number,
  onFound: (userId: number) => void = () => {},
): Viewers {
  const known = createKnownTokens(feed, maxAge);
  const noteUse = createUseNotes(sql);

  function remember(token: string, { id, userId, lastUsedAt }: FoundToken): Viewer {
    const entry = { viewer: { id: userId, tokenId: id }, noted: lastUsedAt?.getTime() ?? 0 };
    known.add(token, entry);
    noteUse(entry);
    onFound(userId);
    return entry.viewer;
  }

  async function lookUp(tokens: readonly string[]): Promise<(Viewer | null)[]> {
    known.beginLookUp();
    const different = [...new Set(tokens)];
    const found = await findTokens(sql, different);
    const viewers = new Map(
      different.map((token, index) => {
        const row = found[index];
        return [token, row ? remember(token, row) : null];
      }),
    );
    return tokens.map((token) => viewers.get(token) ?? null);
  }

  const lookUps = createQueue(lookUp);
  return {
    known(header, connection) {
      const entry = header === undefined ? undefined : known.get(header, connection);
      if (entry) noteUse(entry);
      return entry?.viewer;
    },

    async authenticate(header) {
      const token = wellFormedTokenIn(header);
      return token === undefined ? null : lookUps.load(token);
    },

    async isValid({ id, tokenId }) {
      if (tokenId === undefined) return false;
      const isThere = (await sql.count('ApiToken', { id: tokenId, userId: id, revokedAt: null })) > 0;
      // Not left to the change feed: from here on this process must not accept the token.
      if (!isThere) known.forget(id);
      return isThere;
    },
  };
}

/** Writes when tokens were last used. Nothing awaits that, and it may fail: no request should wait for bookkeeping or break on it. */
function createUseNotes(sql: Sql) {
  return (entry: Known): void => {
    const now = Date.now();
    if (now - entry.noted < lastUsedPrecision) return;
    entry.noted = now;
    const stale = new Date(now - lastUsedPrecision);
    // The statement checks the time again: another process, or another request of a burst, may have written it.
    sql
      .run(
        'UPDATE "ApiToken" SET "lastUsedAt" = $2 WHERE id = $1 AND ("lastUsedAt" IS NULL OR "lastUsedAt" <= $3)',
        [entry.viewer.tokenId, new Date(now), stale],
      )
      .catch(() => {});
  };
}

/** Caches tokens, by their digests, until the feed announces that they may have changed. */
function createKnownTokens(feed: ChangeFeed, maxAge: number) {
  /** The digests of each user's cached tokens. */
  const digests = new Map<number, Set<string>>();
  const known = new LRUCache<string, Known>({
    max: maxKnown,
    ttl: maxAge * 1_000,
    ttlResolution: 1_000,
    dispose({ viewer: { id } }, digest) {
      const left = digests.get(id);
      left?.delete(digest);
      if (left?.size === 0) digests.delete(id);
    },
  });
  const latest = createLatestDigests();
  /** The users whose tokens may have changed since the running look-up began. */
  const changed = { users: new Set<number>(), anybody: false };

  /** Drops a user's tokens, any of which may be revoked. Must also be called when one is found to be revoked. */
  function forget(userId: number): void {
    latest.clear();
    changed.users.add(userId);
    for (const digest of [...(digests.get(userId) ?? [])]) known.delete(digest);
  }
  feed.subscribe((change) => {
    if (!concernsTokens(change)) return;
    if (change.kind === 'user') return forget(change.userId);
    latest.clear();
    changed.anybody = true;
    known.clear();
  });
  return {
    forget,
    /** Must be called before each look-up whose tokens may be added. */
    beginLookUp() {
      changed.users.clear();
      changed.anybody = false;
    },

    add(token: string, entry: Known) {
      const { id } = entry.viewer;
      // The token may have been revoked in the meantime: then what was found must not outlive the requests that asked for it.
      if (!feed.listening || changed.anybody || changed.users.has(id)) return;
      const digest = digestOf(token);
      known.set(digest, entry);
      digests.set(id, (digests.get(id) ?? new Set()).add(digest));
    },

    get(header: string, connection: object | undefined): Known | undefined {
      const before = latest.get(header, connection);
      const token = before === undefined ? tokenIn(header) : undefined;
      const digest = before ?? (token === undefined ? undefined : digestOf(token));
      const entry = digest === undefined ? undefined : known.get(digest);
      // Nothing is remembered of a token that is not cached.
      if (!entry || digest === undefined) latest.delete(connection);
      else if (before === undefined) latest.set(header, digest, connection);
      return feed.listening ? entry : undefined;
    },
  };
}

/** The last header of each connection, with the digest of its token: to compute the digest takes as long as all else about a header. */
function createLatestDigests() {
  let latest = new WeakMap<object, { readonly header: string; readonly digest: string }>();
  return {
    get(header: string, connection: object | undefined): string | undefined {
      const last = connection && latest.get(connection);
      return last?.header === header ? last.digest : undefined;
    },
    set(header: string, digest: string, connection: object | undefined): void {
      if (connection) latest.set(connection, { header, digest });
    },
    delete(connection: object | undefined): void {
      if (connection) latest.delete(connection);
    },
    clear(): void {
      latest = new WeakMap();
    },
  };
}

/**
 * Looks up tokens by one statement at a time, each for all requests that arrived in the meantime. So however fast somebody
 * guesses tokens, that occupies one connection only, and a valid token waits for two statements at most.
 */
function createQueue(
  lookUp: (tokens: readonly string[]) => Promise<(Viewer | null)[]>,
): DataLoader<string, Viewer | null> {
  let underway: Promise<unknown> = Promise.resolve();
  let turns: Promise<unknown> = underway;
  return new DataLoader<string, Viewer | null>(
    (tokens) => {
      const looking = lookUp(tokens);
      underway = looking.catch(() => {});
      return looking;
    },
    {
      // A request must not get a result that was read before it arrived.
      cache: false,
      maxBatchSize: maxLookUps,
      // One after the other: `dispatch` calls the function above.
      batchScheduleFn(dispatch) {
        turns = turns.then(() => {
          dispatch();
          return underway;
        });
      },
    },
  );
}

/** Whether an `Authorization` header has a token that only the database can tell to be valid or not. */
export function mayBeToken(header: string | undefined): boolean {
  return wellFormedTokenIn(header) !== undefined;
}

/** What is wrong with an `Authorization` header for which there is no viewer. */
export function problemOf(header: string | undefined): TokenProblem {
  if (header === undefined) return 'missing';
  return tokenIn(header) === undefined ? 'malformed' : 'invalid';
}

/** The token of a header, if it could be one of ours: any other is known to be invalid without the database. */
function wellFormedTokenIn(header: string | undefined): string | undefined {
  const token = tokenIn(header);
  return token !== undefined && isToken(token) ? token : undefined;
}

/** The token of a header. The scheme's name is case-insensitive (RFC 9110, section 11.1). */
export function tokenIn(header: string | undefined): string | undefined {
  return header?.match(/^Bearer +(\S+) *$/i)?.[1];
}
