/** Where servers are reached. */

import { expect, it } from 'vitest';
import { isEverywhere, originOf } from '../../src/http/hostName.ts';

it.each([
  ['127.0.0.1', 'http://127.0.0.1:4000', false],
  ['::1', 'http://[::1]:4000', false],
  ['0.0.0.0', 'http://127.0.0.1:4000', true],
  ['::', 'http://[::1]:4000', true],
  ['::ffff:0.0.0.0', 'http://127.0.0.1:4000', true],
])('a server on %s is reached at %s, and listens on every address: %s', (host, origin, everywhere) => {
  expect(originOf(host, 4000)).toBe(origin);
  expect(isEverywhere(host)).toBe(everywhere);
});
