/** The common parts of all contestants: the pool of connections, and the authentication. */

import { createHash } from 'node:crypto';
import pg from 'pg';

export function openPool(): pg.Pool {
  // As many connections as Dovetail has.
  const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10 });
  pool.on('error', () => {});
  return pool;
}

/** In milliseconds: how long the user of a token is cached. */
const trusted = 60_000;

const known = new Map<string, { readonly viewer: number; readonly until: number }>();

/**
 * The id of the user whose token came with the request. Tokens are cached by their digests, as in Dovetail, but for a minute,
 * where Dovetail is notified when a token is revoked.
 */
export async function authenticate(pool: pg.Pool, header: string | undefined): Promise<number | null> {
  const token = header?.match(/^Bearer +(\S+) *$/i)?.[1];
  if (token === undefined) return null;
  const digest = createHash('sha256').update(token).digest('hex');
  const now = Date.now();
  const remembered = known.get(digest);
  if (remembered && remembered.until > now) return remembered.viewer;
  const { rows } = await pool.query<{ userId: number }>({
    name: 'viewer',
    text: 'SELECT "userId" FROM "ApiToken" WHERE digest = $1 AND "revokedAt" IS NULL',
    values: [Buffer.from(digest, 'hex')],
  });
  const viewer = rows[0]?.userId;
  if (viewer === undefined) return null;
  known.set(digest, { viewer, until: now + trusted });
  return viewer;
}

/** Prints the address of this contestant for the benchmark. */
export function announce(port: number): void {
  process.stdout.write(`http://127.0.0.1:${port}\n`);
}
