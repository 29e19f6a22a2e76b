/** Requests and responses in the classes of Fetch, as Yoga's handler and its plugins take them. */

import type { ReadableStream } from 'node:stream/web';
import type { Exchange } from '../http/exchange.ts';
import { isRead } from '../http/request.ts';
import type { HttpResponse, StreamedResponse } from '../http/response.ts';
import type { RequestContext } from './context.ts';
import { type Accepted, eventStream, multipart, vary } from './overHttp.ts';

/** Yoga needs an origin. No rule depends on it. */
const origin = 'http://gateway';

/** Headers about a connection or the bytes on it, which no library decides (RFC 9110, section 7.6.1). */
const connectionHeaders = [
  'connection',
  'content-encoding',
  'content-length',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
];

/** The request for Yoga, without its body, which has been read. It accepts what the gateway has chosen of what the client accepts. */
export function requestFor(exchange: Exchange, { whole, stream }: Accepted): Request {
  const given = Object.entries(exchange.request.headers);
  const headers = new Headers(given.map(([name, value]): [string, string] => [name, String(value)]));
  headers.set('accept', [stream, whole].filter((type) => type !== undefined).join(', '));
  const method = isRead(exchange) ? 'GET' : 'POST';
  return new Request(new URL(exchange.target, origin), { method, headers });
}

/** The gateway's response for one of Yoga. A stream of results is not read here. */
export async function received(
  response: Response,
  { progress, broken }: RequestContext & { readonly broken: AbortController },
): Promise<HttpResponse | StreamedResponse> {
  const { status, headers: given } = response;
  const headers = Object.fromEntries(
    [...given].filter(([name]) => !connectionHeaders.includes(name)).map(named),
  );
  const type = given.get('content-type') ?? '';
  if (response.body && [eventStream, multipart].some((each) => type.startsWith(each)))
    return {
      status,
      headers: { Vary: vary, 'Cache-Control': 'no-cache', ...headers },
      // The types of the DOM and of Node differ for the same class.
      stream: response.body as ReadableStream<Uint8Array>,
      signal: broken.signal,
      ended: () => progress.end?.(),
    };
  const body = Buffer.from(await response.arrayBuffer());
  const own = { 'Content-Length': body.length, 'Cache-Control': 'no-store', Vary: vary };
  return { status, headers: { ...own, ...headers }, body };
}

/** A header with its name in the usual letters: Fetch has it in lower case. */
const named = ([name, value]: readonly [string, string]) =>
  [name.replace(/(^|-)[a-z]/g, (letter) => letter.toUpperCase()), value] as const;
