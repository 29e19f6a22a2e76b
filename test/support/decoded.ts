/** Decompresses bodies of responses. */

import { gunzipSync } from 'node:zlib';

/** @param coding as `Content-Encoding` names it. */
export function decoded<Body extends Buffer | string>(body: Body, coding: unknown): Body | Buffer {
  // A 304 and the response to a HEAD have no body.
  if (coding === undefined || body.length === 0) return body;
  if (coding === 'gzip') return gunzipSync(Buffer.from(body));
  throw new Error(`There is no such coding as ${coding}`);
}
