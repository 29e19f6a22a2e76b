/** Which positions are looked up at the primary. */

import { expect, it, vi } from 'vitest';
import type { Database } from '../../../src/database/database.ts';
import { createPositions } from '../../../src/extensions/standbys/positions.ts';
import type { Exchange } from '../../../src/http/exchange.ts';
import { createFakeFeed } from '../../support/feed.ts';

it('a position that was reached is looked up again only after a loss of the feed', async () => {
  const { feed, lose } = createFakeFeed();
  const run = vi.fn().mockResolvedValue([{ text: '0/10', timeline: '0000000C' }]);
  const { beforeRead } = createPositions({ run }, feed, () => {});
  // It reads nothing else of the exchange.
  const request = { headers: { 'dovetail-position': '12-0/5' } };
  const exchange = { endpoint: 'rest', request } as unknown as Exchange;
  const receiveTwice = async () => {
    for (let time = 0; time < 2; time++) await beforeRead(exchange, { id: 1, tokenId: 1, scope: 'activate' });
  };
  await receiveTwice();
  expect(run).toHaveBeenCalledTimes(1);
  lose();
  await receiveTwice();
  expect(run).toHaveBeenCalledTimes(2);
});

it('a position that was reached is forgotten with the connection: the next one may lead to an older primary', async () => {
  const { feed, lose } = createFakeFeed();
  let timeline = '00000002';
  const sql = { run: async () => [{ text: '0/20', timeline }] } as unknown as Database['sql'];
  const { beforeRead } = createPositions(sql, feed, () => {});
  const request = { headers: { 'dovetail-position': '2-0/10' } };
  const exchange = { endpoint: 'rest', request } as unknown as Exchange;
  const receiveNow = async () =>
    (await beforeRead(exchange, { id: 1, tokenId: 1, scope: 'activate' }))?.status;
  expect(await receiveNow()).toBeUndefined();
  timeline = '00000001';
  expect(await receiveNow()).toBeUndefined();
  lose();
  expect(await receiveNow()).toBe(503);
});
