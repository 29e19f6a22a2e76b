/** Reads request bodies, up to a limit. */

import type { IncomingMessage } from 'node:http';

/**
 * The whole body, or undefined if it has more bytes than the limit. What is left of a body that is too large
 * is not read: the response should close the connection. Never settles for a client that leaves before the end.
 */
export function readBody(request: IncomingMessage, limit: number): Promise<Buffer | undefined> {
  if (Number(request.headers['content-length']) > limit) return Promise.resolve(undefined);
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= limit) {
        chunks.push(chunk);
      } else {
        request.pause();
        resolve(undefined);
      }
    });
    request.on('end', () => resolve(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)));
    // The client went away: nobody waits for a response any more, and so nothing for the body.
    request.on('error', () => {});
  });
}
