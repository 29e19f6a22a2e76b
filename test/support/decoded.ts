/** Decompresses bodies of responses. */

import * as zlib from 'node:zlib';

/** Node has zstd since 22.15 and 23.8; the types are those of an older version. */
const { zstdDecompressSync } = zlib as typeof zlib & { zstdDecompressSync?: (body: Buffer) => Buffer };

/** Whether this Node has zstd. */
export const hasZstd = zstdDecompressSync !== undefined;

/** @param coding as `Content-Encoding` names it. */
export function decoded<Body extends Buffer | string>(body: Body, coding: unknown): Body | Buffer {
  // A 304 and the response to a HEAD have no body.
  if (coding === undefined || body.length === 0) return body;
  const bytes = Buffer.from(body);
  if (coding === 'gzip') return zlib.gunzipSync(bytes);
  if (coding === 'br') return zlib.brotliDecompressSync(bytes);
  if (coding === 'zstd' && zstdDecompressSync) return zstdDecompressSync(bytes);
  throw new Error(`There is no such coding as ${coding}`);
}
