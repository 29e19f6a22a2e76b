/** What the head of a request says about it: whether it reads, asks for a page, or names its host and token exactly once. */

import type { IncomingMessage } from 'node:http';
import { acceptedOf, readAccept } from './accept.ts';
import type { Exchange } from './exchange.ts';

/** Whether the request only reads. A HEAD is handled as a GET: Node leaves out the body of its response. */
export function isRead({ request: { method } }: Exchange): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** The media types of what the addresses of pages serve. Of types with equal weights the client gets the first. */
const pageTypes = [
  'application/json',
  'application/graphql-response+json',
  'text/plain',
  'text/html',
] as const;

/**
 * Whether a browser asks for a page. A request with a token never does, whatever it accepts: a browser that opens an address
 * sends none, while Java's clients accept HTML first unless they are told otherwise.
 */
export function asksForPage(exchange: Exchange): boolean {
  const { accept, authorization } = exchange.request.headers;
  if (authorization !== undefined || !isRead(exchange)) return false;
  return acceptedOf(pageTypes, readAccept(accept))[0] === 'text/html';
}

/** A name or an address, with or without a port (RFC 3986, section 3.2). */
const hostForm = /^(?:[\w.~!$&'()*+,;=%-]*|\[[\w:.]+\])(?::\d*)?$/;

/**
 * Whether a request has no valid Host, or more than one Host or Authorization (RFC 9112, section 3.2; RFC 9110, section 11.6.2).
 * Node takes the first of several, while a proxy in front may have taken another.
 */
export function isMisaddressed({ httpVersion, headers, rawHeaders }: IncomingMessage): boolean {
  if (headers.host === undefined ? httpVersion === '1.1' : !hostForm.test(headers.host)) return true;
  let hosts = 0;
  let tokens = 0;
  // Names are at even indexes, each followed by its value.
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? '';
    // Comparing the length first is faster, and this code sees every header of every request.
    if (name.length === 4 && name.toLowerCase() === 'host') hosts++;
    else if (name.length === 13 && name.toLowerCase() === 'authorization') tokens++;
  }
  return hosts > 1 || tokens > 1;
}
