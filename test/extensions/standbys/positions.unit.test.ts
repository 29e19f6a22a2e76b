/** Which positions are looked up at the primary. */

import { expect, it, vi } from 'vitest';
import type { Database } from '../../../src/database/database.ts';
import { createPositions } from '../../../src/extensions/standbys/positions.ts';
import type { Exchange } from '../../../src/http/exchange.ts';
import { createFakeFeed } from '../../support/feed.ts';

/** Positions of a primary that a test may replace, and a request with one of them. */
function open() {
  const { feed, lose } = createFakeFeed();
  const primary = { text: '1/20', timeline: '0000000C' };
  const run = vi.fn(async () => [{ ...primary }]);
  const { beforeRead } = createPositions({ run } as unknown as Database['sql'], feed, () => {});
  // It reads nothing else of the exchange.
  const exchangeWith = (position: string) =>
    ({ endpoint: 'rest', request: { headers: { 'dovetail-position': position } } }) as unknown as Exchange;
  const statusNow = async (position = '12-0/FFFFFFF0') =>
    (await beforeRead(exchangeWith(position), { id: 1, tokenId: 1, scope: 'activate' }))?.status;
  return { lose, primary, run, statusNow };
}

it('a position that was reached is looked up again only after a loss of the feed: the next connection may lead to an older primary', async () => {
  const { lose, primary, run, statusNow } = open();
  expect(await statusNow()).toBeUndefined();
  primary.timeline = '0000000B';
  expect(await statusNow()).toBeUndefined();
  expect(run).toHaveBeenCalledOnce();
  lose();
  expect(await statusNow()).toBe(503);
});

it('an invented position is not taken for reached, nor is a later one without a look', async () => {
  const { run, statusNow } = open();
  for (const position of ['12-9/0', '12-2/0']) expect(await statusNow(position)).toBeUndefined();
  expect(run).toHaveBeenCalledTimes(2);
});
