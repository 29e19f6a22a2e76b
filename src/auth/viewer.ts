/** The viewer: the user whose token came with the request, and the only way into the data. */

import { LRUCache } from 'lru-cache';
import type { ChangeFeed } from '../database/feed.ts';
import type { Sql } from '../database/sql.ts';
import { digestOf, findToken } from './token.ts';

export interface Viewer {
  readonly id: number;
  readonly tokenId: number;
}

export interface Viewers {
  /** The viewer, if the token was looked up before and nothing has changed since. */
  known(header: string | undefined): Viewer | undefined;
  /** What another request's look-up of the same token will find, if one is under way and nothing has changed since. */
  expected(header: string | undefined): Promise<Viewer | null> | undefined;
  /** The viewer of an `Authorization` header, or null when it is missing, malformed, unknown or revoked. */
  authenticate(header: string | undefined): Promise<Viewer | null>;
  /** Whether the token that a viewer came with still stands for them. */
  isValid(viewer: Viewer): Promise<boolean>;
}

/** How stale a token's last-used time may be, in milliseconds: a write per request would cost more than it tells. */
const lastUsedPrecision = 60_000;

/** How many tokens are remembered. */
const maxKnown = 10_000;

interface Known {
  readonly viewer: Viewer;
  /** When the token's last-used time was written, in milliseconds since the epoch. */
  noted: number;
}

/** Tokens are remembered, by their digests, only while the feed would tell of their being revoked. */
export function createViewers(sql: Sql, feed: ChangeFeed): Viewers {
  const known = new LRUCache<string, Known>({ max: maxKnown });
  /** The look-ups under way, by the number of changes before them and the token. */
  const underway = new Map<string, Promise<Viewer | null>>();
  let changes = 0;
  feed.subscribe((change) => {
    if (change.kind === 'user' && change.table !== 'ApiToken') return;
    changes++;
    known.clear();
  });

  /** Not awaited by anybody, and allowed to fail: no request should wait for, or break on, bookkeeping. */
  function note(entry: Known): void {
    const now = Date.now();
    if (now - entry.noted < lastUsedPrecision) return;
    entry.noted = now;
    const stale = new Date(now - lastUsedPrecision);
    // The condition is asked again by the write: another process, or another request of a burst, may have written.
    sql
      .run(
        'UPDATE "ApiToken" SET "lastUsedAt" = $2 WHERE id = $1 AND ("lastUsedAt" IS NULL OR "lastUsedAt" <= $3)',
        [entry.viewer.tokenId, new Date(now), stale],
      )
      .catch(() => {});
  }

  async function lookUp(token: string): Promise<Viewer | null> {
    const before = changes;
    const found = await findToken(sql, token);
    if (!found) return null;
    const viewer = { id: found.userId, tokenId: found.id };
    const entry = { viewer, noted: found.lastUsedAt?.getTime() ?? 0 };
    // Revoked in the meantime, perhaps: then the answer must not outlive this request.
    if (changes === before) known.set(digestOf(token), entry);
    note(entry);
    return viewer;
  }

  return {
    known(header) {
      const token = tokenIn(header);
      const entry = token !== undefined && feed.listening ? known.get(digestOf(token)) : undefined;
      if (entry) note(entry);
      return entry?.viewer;
    },

    expected(header) {
      const token = tokenIn(header);
      return token !== undefined && feed.listening ? underway.get(`${changes} ${token}`) : undefined;
    },

    async authenticate(header) {
      const token = tokenIn(header);
      if (token === undefined) return null;
      const key = `${changes} ${token}`;
      const found = lookUp(token).finally(() => underway.delete(key));
      underway.set(key, found);
      return found;
    },

    async isValid({ id, tokenId }) {
      return (await sql.count('ApiToken', { id: tokenId, userId: id, revokedAt: null })) > 0;
    },
  };
}

/** The scheme's name is case-insensitive (RFC 9110, section 11.1). */
function tokenIn(header: string | undefined): string | undefined {
  return header?.match(/^Bearer +(\S+) *$/i)?.[1];
}
