/** Authentication: finds the viewer, the user whose token came with a request. The viewer is the only way into the data. */

import type { IncomingMessage } from 'node:http';
import { LRUCache } from 'lru-cache';
import { type ChangeFeed, concernsTokens } from '../database/feed/changeFeed.ts';
import type { Sql } from '../database/reader/sql.ts';
import { createSharedRuns } from '../database/waiting.ts';
import { challengeFor, messages, type TokenProblem, unauthorizedMessage } from '../errors.ts';
import { errorResponse } from '../http/errorResponse.ts';
import type { Exchange } from '../http/exchange.ts';
import type { HttpResponse } from '../http/response.ts';
import { localScope, remoteScope, type Scope } from './scopes.ts';
import { digestOf, type FoundToken, findTokens, isToken } from './tokens.ts';

export interface Viewer {
  readonly id: number;
  /** The id of a token of this gateway; undefined for a token of another service, which has none here. */
  readonly tokenId: number | undefined;
  /** What the token may do. */
  readonly scope: Scope;
  /** Set for tokens of this gateway: the digest of the secret that was presented. A token may have two secrets for a while. */
  readonly digest?: string;
  /** Set for tokens of this gateway: when the secret expires, in milliseconds since the epoch. Infinite for one that does not. */
  readonly expiresAt?: number;
  /** The viewer of the same token for requests from the machine itself, if it may do more there. */
  readonly onLoopback?: Viewer;
  /** Whether it is such a viewer. */
  readonly isOnLoopback?: true;
  /** Aborted when the token has ended. Set for tokens of another service, whose end may be noticed before the next check. */
  readonly ended?: AbortSignal;
}

export type Viewers = ReturnType<typeof createViewers>;

/**
 * Asks for the token of a request again. It must be called after every wait, directly before anything is read or written for the
 * viewer. It takes no time unless tokens of the user have changed.
 * @param exchange is told whether the token has expired.
 * @returns what the token stands for now, in place of what was known; null if it has ended.
 */
export type Recheck = (
  exchange: { hasExpiredToken: boolean; readonly request: Pick<IncomingMessage, 'headers'> },
  viewer: Viewer,
) => Viewer | null | Promise<Viewer | null>;

/** How stale a token's last-used time may be, in milliseconds. A write for each request would cost more than it is worth. */
const lastUsedPrecision = 60_000;

/** How many tokens are cached. */
const maxKnown = 10_000;

/** What the token of a request is found to be. */
export type Presented = Viewer | 'expired';

interface Known {
  readonly viewer: Viewer & { readonly tokenId: number; readonly expiresAt: number };
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
  const known = createTokenCache(feed, maxAge);

  /** The viewer of a cached token. */
  function use(entry: Known): Presented {
    const now = Date.now();
    if (hasExpired(entry.viewer, now)) return 'expired';
    noteUse(sql, entry, now);
    return entry.viewer;
  }

  function remember(token: string, row: FoundToken): Presented {
    const entry = { viewer: viewerOf(row), noted: row.lastUsedAt?.getTime() ?? 0 };
    known.add(token, entry);
    onFound(row.userId);
    return use(entry);
  }

  const findAgain = createLookUpAgain(sql, known.forget);

  const lookUp = createQueue(async (tokens) => {
    known.beginLookUp();
    const secrets = new Map(Array.from(tokens, (token) => [digestOf(token), token]));
    const found = await findTokens(sql, [...secrets.keys()]);
    return new Map(
      [...found].map(([digest, row]) => {
        const token = secrets.get(digest) ?? '';
        return [token, remember(token, row)];
      }),
    );
  });
  return {
    /** What the token is, if it was looked up before and nothing has changed since. */
    known(header: string | undefined): Presented | undefined {
      const entry = known.get(tokenIn(header) ?? '');
      return entry && use(entry);
    },

    /** What the token of an `Authorization` header is; null when it is missing, malformed, unknown or revoked. */
    async authenticate(header: string | undefined): Promise<Presented | null> {
      const token = wellFormedTokenIn(header);
      return token === undefined ? null : lookUp(token);
    },

    /** What the token of a viewer is now; null if it is revoked. Without a change since it was found, that is known at once. */
    recheck(viewer: Viewer): Presented | null | Promise<Presented | null> {
      if (known.isCurrent(viewer)) return unlessExpired(viewer);
      return findAgain(viewer).then((found) => found && unlessExpired(found));
    },

    /** Looks up what the token of a viewer is now, even if it has expired; null if it is revoked. */
    findAgain,

    /** Must be called when this process has changed tokens of a user. */
    forget: known.forget,
  };
}

function createLookUpAgain(sql: Sql, forget: (userId: number) => void) {
  return async ({ id, digest = '', isOnLoopback }: Viewer): Promise<Viewer | null> => {
    const found = (await findTokens(sql, [digest])).get(digest);
    if (found?.userId === id) {
      const viewer = viewerOf(found);
      return (isOnLoopback && viewer.onLoopback) || viewer;
    }
    // Not left to the change feed: from here on this process must not accept the token.
    forget(id);
    return null;
  };
}

export const hasExpired = ({ expiresAt = Number.POSITIVE_INFINITY }: Viewer, now = Date.now()) =>
  expiresAt <= now;
const unlessExpired = (viewer: Viewer): Presented => (hasExpired(viewer) ? 'expired' : viewer);

function viewerOf({ id, userId, scope, digest, validUntil }: FoundToken): Known['viewer'] {
  const viewer = { id: userId, tokenId: id, scope: remoteScope(scope), digest, expiresAt: validUntil };
  const local = localScope(scope);
  return local === viewer.scope
    ? viewer
    : { ...viewer, onLoopback: { ...viewer, scope: local, isOnLoopback: true } };
}

/** Writes when tokens were last used. No request waits for that, or fails if it fails. */
function noteUse(sql: Sql, entry: Known, now: number): void {
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
}

/** Caches tokens until the feed announces that they may have changed. */
function createTokenCache(feed: ChangeFeed, maxAge: number) {
  // The keys are the tokens themselves: a digest takes as long to compute as all other work on the head of a request.
  const known = new LRUCache<string, Known>({
    max: maxKnown,
    ttl: maxAge * 1_000,
    ttlResolution: 1_000,
    dispose({ viewer }) {
      current.delete(viewer);
      if (viewer.onLoopback) current.delete(viewer.onLoopback);
    },
  });
  const current = new WeakSet<Viewer>();
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
      if (!feed.listening || changed.anybody || changed.users.has(id)) return;
      const { viewer } = entry;
      known.set(token, entry);
      current.add(viewer);
      if (viewer.onLoopback) current.add(viewer.onLoopback);
    },

    /** Whether no token of the viewer has changed since this one was looked up. */
    isCurrent: (viewer: Viewer) => feed.listening && current.has(viewer),

    get(token: string): Known | undefined {
      return feed.listening ? known.get(token) : undefined;
    },
  };
}

/**
 * Looks up tokens by one statement at a time, for all requests that arrived in the meantime. So guessed tokens occupy one
 * connection only, however many there are, and a valid token waits for two statements at most.
 */
function createQueue(lookUp: (tokens: ReadonlySet<string>) => Promise<ReadonlyMap<string, Presented>>) {
  let waiting = new Set<string>();
  const lookUps = createSharedRuns(() => {
    const tokens = waiting;
    waiting = new Set();
    return lookUp(tokens);
  });
  return async (token: string): Promise<Presented | null> => {
    waiting.add(token);
    return (await lookUps.begin()).get(token) ?? null;
  };
}

/**
 * What is wrong with an `Authorization` header for which there is no viewer.
 * @param hasExpired whether its token was found to have expired.
 */
export function problemOf(header: string | undefined, hasExpired: boolean): TokenProblem {
  if (hasExpired) return 'expired';
  if (header === undefined) return 'missing';
  return tokenIn(header) === undefined ? 'malformed' : 'invalid';
}

/** The response to a request without a valid token. All but the REST API have a message that says what is wrong with it. */
export function unauthorized({ endpoint, request, hasExpiredToken }: Exchange): HttpResponse {
  const problem = problemOf(request.headers.authorization, hasExpiredToken);
  const message = endpoint === 'rest' ? messages.unauthorized : unauthorizedMessage(problem);
  return errorResponse(endpoint, { code: 'UNAUTHENTICATED', message }, challengeFor(problem));
}

/** The token of a header, if it has the form of ours. Any other is invalid without a query. */
export function wellFormedTokenIn(header: string | undefined): string | undefined {
  const token = tokenIn(header);
  return token !== undefined && isToken(token) ? token : undefined;
}

/** The token of a header. The scheme's name is case-insensitive (RFC 9110, section 11.1). */
export function tokenIn(header: string | undefined): string | undefined {
  return header?.match(/^Bearer +(\S+) *$/i)?.[1];
}
