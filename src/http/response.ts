/** HTTP responses: whole ones, made once and sent as often as they hold, and those that come piece by piece. */

import { createHash } from 'node:crypto';
import { once } from 'node:events';
import type { Forms } from './compression.ts';
import type { PieceEncoder } from './contentCoding.ts';
import type { Exchange } from './exchange.ts';

export interface HttpResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | number>>;
  readonly body: Buffer;
  /** What was asked for, as an exchange says it: a response out of the cache brings this along. */
  readonly operation?: string | undefined;
  /** The code of the first error of a GraphQL response, for the log. */
  readonly errorCode?: string | undefined;
  /** For responses that a client may ask for conditionally. */
  readonly validator?: Validator;
  /** Its compressed forms, for one that is sent more than once. */
  readonly forms?: Forms;
  /** Whether it is the upstream's, to be sent as it came. */
  readonly isRelayed?: boolean;
}

/** A response whose body has no end that is known: the events of a subscription. */
export interface StreamedResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly stream: ReadableStream<Uint8Array> | null;
  /** What its pieces are compressed by, if they are. */
  readonly encoder?: PieceEncoder;
  /** Called once nothing more is sent. */
  ended(): void;
}

export interface Validator {
  /** The strong entity tag of the body. */
  readonly etag: string;
  /** What a 304 has of the headers: all of them that a cache needs (RFC 9110, section 15.4.5). */
  readonly headers: Readonly<Record<string, string>>;
}

const json = 'application/json; charset=utf-8';

/** An error is over when its cause is: no cache may bring it back. */
const unstored = { 'Cache-Control': 'no-store' };

/** A response with a line of text. */
export function textResponse(
  status: number,
  text: string,
  headers: Record<string, string> = {},
): HttpResponse {
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

/** A response without a body. */
export function emptyResponse(status: number): HttpResponse {
  return { status, headers: { 'Content-Length': 0, ...unstored }, body: Buffer.alloc(0) };
}

/** A response with a body of JSON text. */
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
 * Lets clients ask for the response conditionally. The tag is strong (RFC 9110, section 8.8.1): equal tags mean
 * equal bytes. `no-cache` has a cache ask every time, and `private` keeps the response from shared ones.
 * @param vary the request headers that the response depends on.
 * @param others what a 304 is to carry beside.
 */
export function revalidated(
  given: HttpResponse,
  vary: string,
  others: Readonly<Record<string, string>> = {},
): HttpResponse {
  const type = String(given.headers['Content-Type']);
  // The same bytes are another representation by another media type.
  const etag = `"${createHash('sha256').update(type).update(given.body).digest('base64url')}"`;
  const headers = { ETag: etag, 'Cache-Control': 'private, no-cache', Vary: vary, ...others };
  return { ...given, headers: { ...given.headers, ...headers }, validator: { etag, headers } };
}

/** The largest body, in bytes, that takes less time to copy than to be written beside its head. */
const largestText = 8 * 1024;

/** Sends the response, or 304 without its body when the client has it already. */
export function send(exchange: Exchange, given: HttpResponse): void {
  const { request, response } = exchange;
  const { status, headers, body, validator } = given;
  // A request that took too long, or could not be read to its end, may have an error response already.
  if (response.headersSent) return;
  exchange.operation ??= given.operation;
  exchange.errorCode = given.errorCode;
  const condition = request.headers['if-none-match'];
  if (condition !== undefined && validator && matches(condition, validator.etag)) {
    response.writeHead(304, headersOf(exchange, validator.headers, given)).end();
  } else {
    response.writeHead(status, headersOf(exchange, headers, given));
    // Node writes a text in one piece with the head. Each byte is a character of its own in Latin-1, whatever it stands for.
    if (body.length <= largestText) response.end(body.toString('latin1'), 'latin1');
    else response.end(body);
  }
}

type Headers = HttpResponse['headers'];

/** Names and values in turn, which is how Node takes headers fastest. */
type FlatHeaders = readonly (string | number)[];

/** Of responses that are sent more than once. */
const knownFlat = new WeakMap<Headers, FlatHeaders>();

function flat(headers: Headers, isSentAgain: boolean): FlatHeaders {
  const known = isSentAgain ? knownFlat.get(headers) : undefined;
  if (known) return known;
  const made = Object.entries(headers).flat();
  if (isSentAgain) knownFlat.set(headers, made);
  return made;
}

/** All headers: the response's own, and those that the exchange has for it, which go before. */
export function headersOf(
  { headers: others }: Pick<Exchange, 'headers'>,
  own: Headers,
  { forms }: Pick<HttpResponse, 'forms'>,
): (string | number)[] {
  const all = [...flat(own, forms !== undefined)];
  for (const name in others) {
    if (own[name] !== undefined) return Object.entries(joined(own, others)).flat();
    all.push(name, others[name] ?? '');
  }
  return all;
}

/** Those of the exchange in the place of the response's own, but for what it varies by: that is added up. */
function joined(own: Headers, others: Headers): Headers {
  const all = { ...own, ...others };
  return own.Vary !== undefined && others.Vary !== undefined
    ? { ...all, Vary: `${own.Vary}, ${others.Vary}` }
    : all;
}

/** Whether one of the tags of `If-None-Match` is the given one, by the weak comparison (RFC 9110, 13.1.2). */
export function matches(condition: string, etag: string): boolean {
  if (condition === etag) return true;
  return condition.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag);
}

/** How long, in milliseconds, the reader of a stream may leave it unread before it is dropped. */
const slowestReader = 30_000;

/**
 * Sends the response piece by piece, no faster than the client reads it, until it ends, the client leaves or stops
 * reading, or the gateway closes.
 */
export async function sendStream(
  exchange: Exchange,
  { status, headers: own, stream, encoder, ended }: StreamedResponse,
  closing: AbortSignal,
): Promise<void> {
  const { request, response } = exchange;
  // The pending read of a stream that is cancelled need not end, so nothing waits for it.
  const cancel = () => void stream?.cancel().catch(() => {});
  if (response.headersSent) {
    cancel();
    return ended();
  }
  response.writeHead(status, headersOf(exchange, own, {}));
  // What a HEAD asks for are the headers (RFC 9110, section 9.3.2).
  if (request.method === 'HEAD') {
    cancel();
    response.end();
    return ended();
  }
  const reader = stream?.getReader();
  const left = new AbortController();
  // Once, since what ends a compressed stream may be there once.
  const end = () => {
    if (!response.writableEnded) response.end(response.destroyed ? undefined : encoder?.end());
  };
  const leave = () => {
    reader?.cancel().catch(() => {});
    left.abort();
    end();
  };
  response.once('close', leave);
  closing.addEventListener('abort', leave);
  try {
    for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) {
      const { value } = piece;
      const blocks = await encoder?.blocksOf(value);
      if (response.writableEnded) return;
      if (!response.write(encoder && blocks ? encoder.add(value, blocks) : value))
        await once(response, 'drain', {
          signal: AbortSignal.any([left.signal, AbortSignal.timeout(slowestReader)]),
        });
    }
    end();
  } catch {
    response.destroy();
  } finally {
    closing.removeEventListener('abort', leave);
    ended();
  }
}
