/** Which positions are looked up at the primary. */

import { expect, it, vi } from 'vitest';
import type { Database } from '../../../src/database/database.ts';
import { createPositions } from '../../../src/extensions/standbys/positions.ts';
import type { Exchange } from '../../../src/http/exchange.ts';
import { createFakeFeed } from '../../support/feed.ts';

/** Positions of a primary that a test may replace, and a request with one of them. */
function open() {
  const { feed, lose } = createFakeFeed();
  const primary = { text: '0/20', timeline: '0000000C' };
  const run = vi.fn(async () => [{ ...primary }]);
  const { beforeRead } = createPositions({ run } as unknown as Database['sql'], feed, () => {});
  // It reads nothing else of the exchange.
  const request = { headers: { 'dovetail-position': '12-0/10' } };
  const exchange = { endpoint: 'rest', request } as unknown as Exchange;
  const statusNow = async () =>
    (await beforeRead(exchange, { id: 1, tokenId: 1, scope: 'activate' }))?.status;
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
