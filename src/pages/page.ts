/** Pages for browsers: HTML, and the headers that keep a page to itself. */

import { type Answer, revalidated } from '../answer.ts';
import type { Exchange } from '../exchange.ts';

/** What answers at a path that is neither door's. */
export type Page = (exchange: Exchange) => Answer | Promise<Answer>;

/** What a page may load: what this server has, and pictures that are written out in it. */
const ownSources = {
  'default-src': "'none'",
  'script-src': "'self'",
  'style-src': "'self'",
  'img-src': "'self' data:",
  'font-src': "'self'",
  'connect-src': "'self'",
  'base-uri': "'none'",
  'form-action': "'none'",
  'frame-ancestors': "'none'",
};

/**
 * Answers with a page. Nothing may frame it, nothing of it may come from elsewhere, and where it leads to is not
 * told where from. The token of a demo account may stand in it: no other site can read it, and no cache shares it.
 * @param sources directives of the Content Security Policy in the place of those above, for a page that needs more.
 */
export function pageAnswer(html: string, sources: Readonly<Record<string, string>> = {}): Answer {
  const body = Buffer.from(html);
  const policy = Object.entries({ ...ownSources, ...sources }).map(([name, value]) => `${name} ${value}`);
  const headers = {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Length': body.length,
    'Content-Security-Policy': policy.join('; '),
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'DENY',
  };
  return revalidated({ status: 200, headers, body }, 'Accept-Encoding');
}
