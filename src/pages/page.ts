/** Pages for browsers: HTML that may load and run only what its policy names. */

import type { Exchange } from '../http/exchange.ts';
import { type HttpResponse, textResponse } from '../http/response.ts';

/** What responds at a path that is neither API's. */
export type PageHandler = (exchange: Exchange) => HttpResponse | Promise<HttpResponse>;

/** What a page may load, by directive of the Content-Security-Policy. Whatever it does not name is forbidden. */
export type Policy = Readonly<Record<string, string>>;

/** What `default-src` does not cover. */
const closed: Policy = { 'base-uri': "'none'", 'form-action': "'none'", 'frame-ancestors': "'none'" };

/**
 * Responds with a page. Nothing may frame it, and where it leads to is not told where from. The token of a demo
 * account may stand in it: no other site can read it, and no cache shares it.
 */
export function pageResponse(
  html: string,
  policy: Policy,
  headers: Readonly<Record<string, string>> = {},
): HttpResponse {
  const rules = Object.entries({ 'default-src': "'none'", ...closed, ...policy });
  return textResponse(200, html, {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': rules.map(([directive, sources]) => `${directive} ${sources}`).join('; '),
    'Cache-Control': 'private, no-cache',
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'DENY',
    ...headers,
  });
}
