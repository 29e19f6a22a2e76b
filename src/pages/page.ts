/** A page for people: HTML that may load and run only what its policy names. */

import { type Answer, textAnswer } from '../answer.ts';

/** What a page may load, by directive of the Content-Security-Policy. Whatever it does not name is forbidden. */
export type Policy = Readonly<Record<string, string>>;

export function pageAnswer(html: string, policy: Policy): Answer {
  const rules = { 'default-src': "'none'", ...closed, ...policy };
  return textAnswer(200, html, {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': Object.entries(rules)
      .map(([directive, sources]) => `${directive} ${sources}`)
      .join('; '),
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
  });
}

/** What `default-src` does not cover. */
const closed: Policy = { 'base-uri': "'none'", 'form-action': "'none'", 'frame-ancestors': "'none'" };
