/** A finished HTTP answer: made once, sent as often as it holds. */

import { hash } from 'node:crypto';
import type { Exchange } from './exchange.ts';

export interface HttpResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | number>>;
  readonly body: Buffer;
  /** What it answers, as an exchange says it: an answer that is kept brings this along. */
  readonly operation?: string | undefined;
  /** For answers that a client may ask for conditionally. */
  readonly validator?: Validator;
}

interface Validator {
  /** The strong entity tag of the body. */
  readonly etag: string;
  /** What a 304 has of the headers: all of them that a cache needs (RFC 9110, section 15.4.5). */
  readonly headers: Readonly<Record<string, string>>;
}

const json = 'application/json; charset=utf-8';

/** An error is over when its cause is: no cache may bring it back. */
const unstored = { 'Cache-Control': 'no-store' };

/** An answer with a line of text. */
export function textResponse(status: number, text: string, headers: Record<string, string> = {}): HttpResponse {
  const body = Buffer.from(`${text}\n`);
  return {
    status,
    body,
    headers: {
      'Content-Type': 'text/plain; charset=utf-8',
      'Content-Length': body.length,
      ...(status >= 400 && unstored),
      ...headers,
    },
  };
}

/** An answer with a body of JSON text. */
export function jsonResponse(
  status: number,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): HttpResponse {
  const body = Buffer.from(text);
  return {
    status,
    body,
    headers: {
      'Content-Type': json,
      'Content-Length': body.length,
      ...(status >= 400 && unstored),
      ...headers,
    },
  };
}

/**
 * Lets clients ask for the answer conditionally. The tag is strong (RFC 9110, section 8.8.1): equal tags mean
 * equal bytes. `no-cache` has a cache ask every time, and `private` keeps the answer from shared ones.
 * @param vary the request headers that the answer depends on.
 * @param others what a 304 is to carry beside.
 */
export function revalidated(
  given: HttpResponse,
  vary: string,
  others: Readonly<Record<string, string>> = {},
): HttpResponse {
  const etag = `"${hash('sha256', given.body, 'base64url')}"`;
  const headers = { ETag: etag, 'Cache-Control': 'private, no-cache', Vary: vary, ...others };
  return { ...given, headers: { ...given.headers, ...headers }, validator: { etag, headers } };
}

/** Sends the answer, or 304 without its body when the client has it already. */
export function send(exchange: Exchange, given: HttpResponse): void {
  const { request, response } = exchange;
  const { status, headers, body, validator } = given;
  // A request that could not be read to its end may have been answered before its door had an answer.
  if (response.headersSent) return;
  exchange.operation ??= given.operation;
  const condition = request.headers['if-none-match'];
  if (condition !== undefined && validator && matches(condition, validator.etag)) {
    response.writeHead(304, joined(exchange, validator.headers)).end();
  } else {
    response.writeHead(status, joined(exchange, headers)).end(body);
  }
}

/** All headers, with what the answer is said to vary by already (by CORS, which knows no answers). */
function joined({ response, headers: others }: Exchange, headers: HttpResponse['headers']): HttpResponse['headers'] {
  const all = { ...headers, ...others };
  const vary = response.getHeader('Vary');
  if (vary !== undefined) all.Vary = headers.Vary === undefined ? String(vary) : `${headers.Vary}, ${vary}`;
  return all;
}

/** Whether one of the tags of `If-None-Match` is the given one, by the weak comparison (RFC 9110, 13.1.2). */
function matches(condition: string, etag: string): boolean {
  if (condition === etag) return true;
  return condition.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag);
}
