/** Reads request bodies, up to a limit. */

import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { messages } from '../errors.ts';
import { errorResponse, type HttpError } from './errorResponse.ts';
import type { Exchange } from './exchange.ts';
import type { HttpResponse } from './response.ts';

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

/** The bytes of a body of text, or the response to a request whose body cannot be read. */
export async function readText(
  { endpoint, request }: Pick<Exchange, 'endpoint' | 'request'>,
  maxKilobytes: number,
): Promise<Buffer | HttpResponse> {
  const fail = (error: Omit<HttpError, 'code'>, headers?: Record<string, string>) =>
    errorResponse(endpoint, { code: 'BAD_USER_INPUT', ...error }, headers);
  if (isEncoded(request)) return fail({ status: 415, message: messages.bodyEncoded }, acceptsIdentityOnly);
  const body = await readBody(request, maxKilobytes * 1024);
  if (!body) {
    const message = `The request body is larger than ${maxKilobytes} KiB, the most that is allowed`;
    return fail({ status: 413, message }, { Connection: 'close' });
  }
  return isUtf8(body) ? body : fail({ message: messages.bodyNotUtf8 });
}
