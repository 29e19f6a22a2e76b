/** How fresh a request wants its response. */

import { expect, it } from 'vitest';
import { freshnessOf } from '../../src/mirror/freshness.ts';

it.each([
  [undefined, undefined],
  ['', undefined],
  ['no-store', undefined],
  ['no-cache', 0],
  ['No-Cache', 0],
  ['no-store, no-cache', 0],
  ['max-age=0', 0],
  ['max-age=30', 30_000],
  ['no-transform, max-age="30"', 30_000],
  ['max-age = 5 , no-transform', 5_000],
  ['max-age=x', undefined],
  ['max-stale=9', undefined],
  ['x-no-cache', undefined],
])('Cache-Control: %s', (header, milliseconds) => {
  expect(freshnessOf(header)).toBe(milliseconds);
});
