/** Rate limits, of one gateway and shared by several over one database. */

import type pg from 'pg';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { createRateLimit } from '../../src/http/rateLimit.ts';
import { databaseWith } from '../support/setUp.ts';

const { database } = await databaseWith();

/** Waits until counts are on their way to the store. */
const beginSharing = () => new Promise((settle) => setImmediate(settle));

it('several gateways over one database let through about as many requests as one would, and share their counts rarely', async () => {
  const limit = 200;
  const gateways = Array.from({ length: 4 }, () => createRateLimit('together', limit, database.pool));
  const sharing = vi.spyOn(database.pool, 'query');
  let through = 0;
  for (let index = 0; index < 1_000; index++) {
    if (gateways[index % gateways.length]?.spend('alice').isExceeded === false) through++;
    if (index % 10 > 0) continue;
    await beginSharing();
    await expect.poll(() => database.pool.totalCount - database.pool.idleCount).toBe(0);
  }
  expect(through).toBeGreaterThanOrEqual(limit);
  expect(through).toBeLessThanOrEqual(limit + gateways.length * (limit / 20 + 1));
  expect(sharing.mock.calls.length).toBeLessThanOrEqual(20 + gateways.length);
});

describe('a rate limit', () => {
  let now = Date.now();
  beforeEach(() => {
    vi.spyOn(Date, 'now').mockImplementation(() => now);
    vi.spyOn(performance, 'now').mockImplementation(() => now);
  });

  it('lets so many requests a minute through, and says how many are left and for how long', async () => {
    const { spend } = createRateLimit('x', 2, undefined);
    const headers = (left: number, seconds: number) => ({
      'RateLimit-Policy': '"x";q=2;w=60',
      RateLimit: `"x";r=${left};t=${seconds}`,
    });
    expect(spend('alice')).toEqual({ isExceeded: false, headers: headers(1, 60) });
    now += 1_000;
    expect(spend('alice')).toEqual({ isExceeded: false, headers: headers(0, 59) });
    expect(spend('bob')).toEqual({ isExceeded: false, headers: headers(1, 60) });
    now += 58_900;
    // Rounded up, so that a client that waits for so many seconds is let through.
    for (let time = 0; time < 2; time++)
      expect(spend('alice')).toEqual({
        isExceeded: true,
        headers: { ...headers(0, 1), 'Retry-After': '1' },
      });
  });

  it('evicts the count of a client without requests for a minute', () => {
    const { spend } = createRateLimit('x', 1, undefined);
    const set = vi.spyOn(Map.prototype, 'set');
    for (let client = 0; client < 100; client++) spend(`client ${client}`);
    const [counts] = set.mock.contexts;
    expect(counts).toHaveProperty('size', 100);
    now += 60_001;
    spend('another');
    expect(counts).toHaveProperty('size', 1);
  });

  /** A fake of the database with the counts of all gateways. */
  function openStore() {
    const counted = new Map<string, { points: number; expire: number }>();
    const query = vi.fn(async (_text: string, [key, points, expire]: [string, number, number]) => {
      const known = counted.get(key);
      const row = known && known.expire > now ? known : { points: 0, expire };
      counted.set(key, { ...row, points: row.points + points });
      return { rows: [counted.get(key)] };
    });
    // The parts of a pool that are used.
    const shared = { query } as unknown as pg.Pool;
    const shares = () => query.mock.calls.map(([, [key, points]]) => [key, points]);
    return { counted, query, shared, shares };
  }
  async function spendAll({ spend }: ReturnType<typeof createRateLimit>, times: number): Promise<number> {
    let through = 0;
    for (let time = 0; time < times; time++) if (!spend('alice').isExceeded) through++;
    await beginSharing();
    return through;
  }

  it('adds the counts of other gateways to its own, shared and not yet shared', async () => {
    const { counted, shared, query } = openStore();
    const limit = createRateLimit('x', 40, shared);
    counted.set('x:alice', { points: 20, expire: now + 30_000 });
    const response = query.getMockImplementation();
    let respond = () => {};
    query.mockImplementationOnce(async (...given) => {
      await new Promise<void>((settle) => {
        respond = settle;
      });
      return response?.(...given) ?? { rows: [] };
    });
    await spendAll(limit, 3);
    respond();
    await beginSharing();
    // 20 of others, 2 of its own that were shared, 1 that was not, and this one.
    const { headers } = limit.spend('alice');
    expect(headers.RateLimit).toBe('"x";r=16;t=30');
  });

  it.each([50_000, 50_300, 59_999])(
    'lets all requests of the next window through, although it began to share its count only %d ms after the first request',
    async (later) => {
      const { shared } = openStore();
      const limit = createRateLimit('x', 40, shared);
      await spendAll(limit, 1);
      now += later;
      expect(await spendAll(limit, 100)).toBe(39);
      const { headers } = limit.spend('alice');
      now += Number(headers['Retry-After']) * 1_000;
      expect((await spendAll(limit, 10)) + (await spendAll(limit, 100))).toBe(40);
    },
  );

  it('shares what it counted while the database was away with the next portion, and tries no more often', async () => {
    const { shared, shares, query } = openStore();
    const respond = query.getMockImplementation();
    query.mockRejectedValue(new Error('away'));
    const limit = createRateLimit('x', 40, shared);
    for (let time = 0; time < 7; time++) await spendAll(limit, 1);
    expect(shares().map(([, points]) => points)).toEqual([2, 4, 6]);
    if (respond) query.mockImplementation(respond);
    for (let time = 0; time < 3; time++) await spendAll(limit, 1);
    expect(shares().map(([, points]) => points)).toEqual([2, 4, 6, 8, 2]);
  });

  it('rejects for at most a minute although the clock of the gateway that began to count is ahead', async () => {
    const { counted, shared } = openStore();
    const limit = createRateLimit('x', 20, shared);
    counted.set('x:alice', { points: 20, expire: now + 3_600_000 });
    await spendAll(limit, 1);
    expect(limit.spend('alice')).toMatchObject({ isExceeded: true, headers: { 'Retry-After': '60' } });
    now += 60_001;
    expect(limit.spend('alice').isExceeded).toBe(false);
  });
});
