/** A finished HTTP answer: made once, sent as often as it holds. */

import { hash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | number>>;
  readonly body: Buffer;
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

/** An answer with a body of JSON text. */
export function jsonAnswer(
  status: number,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): Answer {
  const body = Buffer.from(text);
  return { status, body, headers: { 'Content-Type': json, 'Content-Length': body.length, ...headers } };
}

/**
 * Lets clients ask for the answer conditionally. The tag is strong (RFC 9110, section 8.8.1): equal tags mean
 * equal bytes. `no-cache` has a cache ask every time, and `private` keeps the answer from shared ones.
 * @param vary the request headers that the answer depends on.
 * @param others what a 304 is to carry beside.
 */
export function revalidated(
  answer: Answer,
  vary: string,
  others: Readonly<Record<string, string>> = {},
): Answer {
  const etag = `"${hash('sha256', answer.body, 'base64url')}"`;
  const headers = { ETag: etag, 'Cache-Control': 'private, no-cache', Vary: vary, ...others };
  return { ...answer, headers: { ...answer.headers, ...headers }, validator: { etag, headers } };
}

/** Sends the answer, or 304 without its body when the client has it already. */
export function send(request: IncomingMessage, response: ServerResponse, answer: Answer): void {
  const { status, headers, body, validator } = answer;
  const condition = request.headers['if-none-match'];
  if (condition !== undefined && validator && matches(condition, validator.etag)) {
    response.writeHead(304, validator.headers).end();
  } else {
    response.writeHead(status, headers).end(body);
  }
}

/** Whether one of the tags of `If-None-Match` is the given one, by the weak comparison (RFC 9110, 13.1.2). */
function matches(condition: string, etag: string): boolean {
  if (condition === etag) return true;
  return condition.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag);
}
