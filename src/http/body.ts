/** Reads request bodies, up to a limit. */

import type { IncomingMessage } from 'node:http';

/** Whether the body comes compressed, as none is read. */
export const isEncoded = ({ headers }: Pick<IncomingMessage, 'headers'>): boolean =>
  !/^(identity)?$/i.test(headers['content-encoding'] ?? '');

/** What a response of status 415 says to that (RFC 9110, section 15.5.16). */
export const takesPlain = { 'Accept-Encoding': 'identity', Connection: 'close' } as const;

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
