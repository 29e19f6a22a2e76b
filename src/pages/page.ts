/** Pages for browsers: HTML that may load and run only what its policy names. */

import type { Exchange } from '../http/exchange.ts';
import { type HttpResponse, textResponse } from '../http/response.ts';

/** Handles the requests to a page: a path that belongs to neither API. */
export type PageHandler = (exchange: Exchange) => HttpResponse | Promise<HttpResponse>;

/** The directives of a page's Content-Security-Policy. Everything that it does not name is forbidden. */
export type Policy = Readonly<Record<string, string>>;

/** The directives that `default-src` does not cover. */
const otherDirectives: Policy = {
  'base-uri': "'none'",
  'form-action': "'none'",
  'frame-ancestors': "'none'",
};

/**
 * Creates the response with a page. No site may frame it, and its links send no `Referer`. It may have the token of the demo
 * account: no other site can read it, and no shared cache may store it.
 */
export function pageResponse(
  html: string,
  policy: Policy,
  headers: Readonly<Record<string, string>> = {},
): HttpResponse {
  const rules = Object.entries({ 'default-src': "'none'", ...otherDirectives, ...policy });
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
