/** The viewer: the user whose token came with the request, and the only way into the data. */

import type { PrismaClient } from '../generated/prisma/client.ts';
import { digestOf, isWellFormed } from './token.ts';

export interface Viewer {
  readonly id: number;
}

/** How stale a token's last-used time may be, in milliseconds: a write per request would cost more than it tells. */
const lastUsedPrecision = 60_000;

/**
 * The viewer of an `Authorization` header, or null when it is missing, malformed, unknown or revoked.
 * The scheme's name is case-insensitive (RFC 9110, section 11.1).
 */
export async function authenticate(
  database: PrismaClient,
  header: string | undefined,
): Promise<Viewer | null> {
  const token = header?.match(/^Bearer +(\S+) *$/i)?.[1];
  if (token === undefined || !isWellFormed(token)) return null;
  const found = await database.apiToken.findUnique({
    where: { digest: digestOf(token) },
    select: { id: true, userId: true, lastUsedAt: true, revokedAt: true },
  });
  if (!found || found.revokedAt) return null;
  const now = new Date();
  const stale = new Date(now.getTime() - lastUsedPrecision);
  if (!found.lastUsedAt || found.lastUsedAt <= stale) {
    // Not awaited, and allowed to fail: no request should wait for, or break on, bookkeeping. The condition is
    // asked again by the write, since every request of a burst gets here before the first one has written.
    database.apiToken
      .updateMany({
        where: { id: found.id, OR: [{ lastUsedAt: null }, { lastUsedAt: { lte: stale } }] },
        data: { lastUsedAt: now },
      })
      .catch(() => {});
  }
  return { id: found.userId };
}
