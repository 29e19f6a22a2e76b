/** The media types that a client accepts, by its Accept header. */

import { expect, it } from 'vitest';
import { acceptedOf } from '../../src/http/request.ts';

const types = ['application/json', 'text/plain', 'text/html'] as const;
const [json, plain, html] = types;

it.each<[string | undefined, string[]]>([
  [undefined, [json, plain, html]],
  ['*/*', [json, plain, html]],
  [' Application/JSON ; charset="UTF-8" ', [json]],
  ['text/html;charset=utf8, application/json;charset="UTF8";q=0.5', [html, json]],
  ['application/json;charset=iso-8859-1', []],
  ['application/json;profile=x', [json]],
  ['text/*', [plain, html]],
  // By weight, then in the order of the header.
  ['text/html, application/json', [html, json]],
  ['text/html;q=0.5, application/json;q=0.4, text/plain;q=0', [html, json]],
  // The most specific range counts.
  ['*/*, text/html;q=0', [json, plain]],
  ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', [html, json, plain]],
  // An invalid weight counts as 0.
  ['text/html;q=x', []],
])('reads from the header %j which of the types are accepted, best first', (accept, accepted) => {
  expect(acceptedOf(types, accept)).toEqual(accepted);
});

it('ignores a header that is too long, and would take long to read', () => {
  expect(acceptedOf([plain, html], `text/html${',*/*;q=0.1'.repeat(99)}`)).toEqual([html, plain]);
  expect(acceptedOf([plain, html], `text/html${',*/*;q=0.1'.repeat(100)}`)).toEqual([plain, html]);
});
