/** One request to the upstream, by `node:http`: `fetch` would add headers of its own, and decode the body. */

import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import { systemCodeOf } from '../../../errors.ts';
import type { HttpResponse } from '../../../http/response.ts';

/** Headers of a request or a response, by their names in lower case. */
export type Headers = Readonly<Record<string, string>>;

/** A request as the upstream gets it. */
export interface UpstreamRequest {
  readonly method: string;
  readonly url: URL;
  /** The path and the query as they are sent, which may differ from how a URL writes them. */
  readonly path: string;
  /** Without `Authorization`. */
  readonly headers: Headers;
  readonly body: Buffer;
}

/** A response of the upstream, with the headers that concern the client; or the gateway's own error if there is none. */
export interface UpstreamResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Buffer;
  /** The gateway's own error response, if the upstream gave none. */
  readonly error?: HttpResponse;
  /** Whether the upstream may have got the request. */
  readonly wasSent: boolean;
}

/** The largest response, in bytes: a page of 100 sessions has less than a tenth of it. */
export const responseLimit = 4 * 1024 * 1024;

/** Sends a request. The body of the response is undefined if it is over the limit: then its rest is not read. */
export async function sendRequest(given: UpstreamRequest, token: string, signal: AbortSignal) {
  const response = await responseTo(given, token, signal);
  return { status: response.statusCode ?? 0, headers: response.headers, body: await readBody(response) };
}

async function responseTo(
  given: UpstreamRequest,
  token: string,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const { method, url, path, headers, body } = given;
  const isReading = method === 'GET' || method === 'HEAD';
  const request = (url.protocol === 'https:' ? https : http).request(url, {
    method,
    path,
    headers: {
      ...headers,
      authorization: `Bearer ${token}`,
      ...(!isReading && { 'content-length': body.length }),
    },
    signal,
  });
  // The body of the response reports errors after its head as well.
  request.on('error', () => {});
  request.end(body);
  try {
    // The event has one argument, the response.
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    return response;
  } catch (error) {
    // The upstream may have closed the connection while it was idle (https://nodejs.org/api/http.html#requestreusedsocket).
    if (isReading && request.reusedSocket && systemCodeOf(error) === 'ECONNRESET')
      return responseTo(given, token, signal);
    throw error;
  }
}

async function readBody(response: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response) {
    size += chunk.length;
    if (size > responseLimit) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Codes of system errors with which no connection is made. */
const unconnected = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN']);

/** Whether no connection was made for a request that failed with this error. */
export const isUnconnected = (error: unknown): boolean => unconnected.has(systemCodeOf(error) ?? '');
