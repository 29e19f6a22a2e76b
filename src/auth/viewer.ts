/** Authentication: finds the viewer, the user whose token came with a request. The viewer is the only way into the data. */

import { LRUCache } from 'lru-cache';
import pLimit from 'p-limit';
import { type ChangeFeed, concernsTokens } from '../database/feed/changeFeed.ts';
import type { Sql } from '../database/reader/sql.ts';
import type { TokenProblem } from '../errors.ts';
import { type FoundToken, findTokens, isToken } from './tokens.ts';

export interface Viewer {
  readonly id: number;
  /** The id of a token of this gateway; undefined for a token of the upstream, which has none here. */
  readonly tokenId: number | undefined;
  /** Aborted when the token has ended. Set for tokens of the upstream, whose end may be noticed before the next check. */
  readonly ended?: AbortSignal;
}

export type Viewers = ReturnType<typeof createViewers>;

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
 * Tokens are cached only while the change feed would announce that one is revoked.
 * @param maxAge how long, in seconds, a token is cached at most.
 * @param onFound called with each user whose token was read from the database.
 */
export function createViewers(
  sql: Sql,
  feed: ChangeFeed,
  maxAge: number,
  onFound: (userId: number) => void = () => {},
) {
  const known = createKnownTokens(feed, maxAge);
  const noteUse = createUseNotes(sql);

  function remember(token: string, { id, userId, lastUsedAt }: FoundToken): Viewer {
    const entry = { viewer: { id: userId, tokenId: id }, noted: lastUsedAt?.getTime() ?? 0 };
    known.add(token, entry);
    noteUse(entry);
    onFound(userId);
    return entry.viewer;
  }

  const lookUp = createQueue(async (tokens) => {
    known.beginLookUp();
    const found = await findTokens(sql, tokens);
    return new Map([...found].map(([token, row]) => [token, remember(token, row)]));
  });
  return {
    /** The viewer, if the token was looked up before and nothing has changed since. */
    known(header: string | undefined): Viewer | undefined {
      const token = tokenIn(header);
      const entry = token === undefined ? undefined : known.get(token);
      if (entry) noteUse(entry);
      return entry?.viewer;
    },

    /** The viewer of an `Authorization` header, or null when it is missing, malformed, unknown or revoked. */
    async authenticate(header: string | undefined): Promise<Viewer | null> {
      const token = wellFormedTokenIn(header);
      return token === undefined ? null : lookUp(token);
    },

    /** Whether the token of a viewer is still valid. */
    async isValid({ id, tokenId }: Viewer): Promise<boolean> {
      if (tokenId === undefined) return false;
      const isThere = (await sql.count('ApiToken', { id: tokenId, userId: id, revokedAt: null })) > 0;
      // Not left to the change feed: from here on this process must not accept the token.
      if (!isThere) known.forget(id);
      return isThere;
    },
  };
}

/** Writes when tokens were last used. No request waits for that, or fails if it fails. */
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

/** Caches tokens until the feed announces that they may have changed. */
function createKnownTokens(feed: ChangeFeed, maxAge: number) {
  // The keys are the tokens themselves: a digest takes as long to compute as all other work on the head of a request.
  const known = new LRUCache<string, Known>({ max: maxKnown, ttl: maxAge * 1_000, ttlResolution: 1_000 });
  /** The users whose tokens may have changed since the running look-up began. */
  const changed = { users: new Set<number>(), anybody: false };

  /** Drops a user's tokens, any of which may be revoked. Must also be called when one is found to be revoked. */
  function forget(userId: number): void {
    changed.users.add(userId);
    for (const [token, { viewer }] of [...known.entries()]) if (viewer.id === userId) known.delete(token);
  }
  feed.subscribe((change) => {
    if (!concernsTokens(change)) return;
    if (change.kind === 'user') return forget(change.userId);
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
      // The token may have been revoked in the meantime. Then the result is only for the requests that wait for it.
      if (feed.listening && !changed.anybody && !changed.users.has(id)) known.set(token, entry);
    },

    get(token: string): Known | undefined {
      return feed.listening ? known.get(token) : undefined;
    },
  };
}

/**
 * Looks up tokens by one statement at a time, for all requests that arrived in the meantime. So guessed tokens occupy one
 * connection only, however many there are, and a valid token waits for two statements at most.
 */
function createQueue(lookUp: (tokens: readonly string[]) => Promise<ReadonlyMap<string, Viewer>>) {
  const inTurn = pLimit(1);
  /** The look-up that has not begun. */
  let next:
    | { readonly tokens: Set<string>; readonly viewers: Promise<ReadonlyMap<string, Viewer>> }
    | undefined;

  function addLookUp() {
    const tokens = new Set<string>();
    const viewers = inTurn(() => {
      // A request must not get a result that was read before it arrived.
      if (next?.tokens === tokens) next = undefined;
      return lookUp([...tokens]);
    });
    return { tokens, viewers };
  }

  return async (token: string): Promise<Viewer | null> => {
    if (!next || next.tokens.size >= maxLookUps) next = addLookUp();
    next.tokens.add(token);
    return (await next.viewers).get(token) ?? null;
  };
}

/** Whether an `Authorization` header has a token that has to be looked up in the database. */
export function mayBeToken(header: string | undefined): boolean {
  return wellFormedTokenIn(header) !== undefined;
}

/** What is wrong with an `Authorization` header for which there is no viewer. */
export function problemOf(header: string | undefined): TokenProblem {
  if (header === undefined) return 'missing';
  return tokenIn(header) === undefined ? 'malformed' : 'invalid';
}

/** The token of a header, if it has the form of ours. Any other is invalid without a query. */
function wellFormedTokenIn(header: string | undefined): string | undefined {
  const token = tokenIn(header);
  return token !== undefined && isToken(token) ? token : undefined;
}

/** The token of a header. The scheme's name is case-insensitive (RFC 9110, section 11.1). */
export function tokenIn(header: string | undefined): string | undefined {
  return header?.match(/^Bearer +(\S+) *$/i)?.[1];
}
