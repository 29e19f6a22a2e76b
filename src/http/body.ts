/** Reads request bodies, up to a limit. */

import type { IncomingMessage } from 'node:http';

/** Whether the body has a content coding. Such bodies are not read. */
export const isEncoded = ({ headers }: Pick<IncomingMessage, 'headers'>): boolean =>
  !/^(identity)?$/i.test(headers['content-encoding'] ?? '');

/** The headers of the 415 for such a body: which codings are accepted (RFC 9110, section 15.5.16). */
export const acceptsIdentityOnly = { 'Accept-Encoding': 'identity', Connection: 'close' } as const;

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
    // The client has left, so that nobody needs the body or a response.
    request.on('error', () => {});
  });
}
