/** Limits that gateways over one database keep together. */

import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createRateLimit, type RateLimit } from '../src/rateLimit.ts';
import { needsEngine, openTestDatabase, type TestDatabase } from './gateway.ts';

describe('gateways over one database', () => {
  needsEngine('postgres', 'the embedded engine has one gateway, which counts alone');

  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase();
  });
  afterAll(() => database?.close());

  /** How many requests are let through of those that come one after the other, spread over the gateways. */
  async function letThrough(gateways: readonly RateLimit[], requests: number): Promise<number> {
    let count = 0;
    for (let index = 0; index < requests; index++) {
      const { isExceeded } = (await gateways[index % gateways.length]?.spend('alice')) ?? {
        isExceeded: true,
      };
      if (!isExceeded) count++;
      // As long as it takes to tell.
      if (index % 10 === 0) await vi.waitFor(() => expect(database.pool.waitingCount + busy()).toBe(0));
    }
    return count;
  }
  const busy = () => database.pool.totalCount - database.pool.idleCount;

  it('let through what one alone would, but for a portion each, and tell each other seldom', async () => {
    const limit = 200;
    const gateways = Array.from({ length: 4 }, () =>
      createRateLimit({ name: 'together', limit, shared: database.pool }),
    );
    const told = vi.spyOn(database.pool, 'query');
    const count = await letThrough(gateways, 1_000);
    expect(count).toBeGreaterThanOrEqual(limit);
    expect(count).toBeLessThanOrEqual(limit + gateways.length * (limit / 20 + 1));
    expect(told.mock.calls.length).toBeLessThanOrEqual(20 + gateways.length);
    told.mockRestore();
  });

  it('refuse for no longer than a minute although the clock of another is an hour ahead', async () => {
    const limit = 20;
    const [ahead, gateway] = ['clocks', 'clocks'].map((name) =>
      createRateLimit({ name, limit, shared: database.pool }),
    );
    await ahead?.spend('bob');
    await vi.waitFor(async () => {
      const { rowCount } = await database.pool.query(
        `UPDATE "RateLimit" SET expire = expire + 3600000 WHERE key LIKE '%bob'`,
      );
      expect(rowCount).toBe(1);
    });
    await gateway?.spend('bob');
    await vi.waitFor(async () => {
      const { headers } = (await gateway?.spend('bob')) ?? {};
      expect(Number(headers?.['Retry-After'])).toBeLessThanOrEqual(60);
    });
  });

  it('count each for itself while the database cannot be reached', async () => {
    const away = vi.spyOn(database.pool, 'query').mockImplementation(() => Promise.reject(new Error('away')));
    const limit = 100;
    const gateways = Array.from({ length: 2 }, () =>
      createRateLimit({ name: 'apart', limit, shared: database.pool }),
    );
    expect(await letThrough(gateways, 500)).toBe(2 * limit);
    away.mockRestore();
  });
});

it('counts in about a microsecond', async () => {
  const limit = createRateLimit({ name: 'fast', limit: 10 ** 9, shared: undefined });
  const requests = 20_000;
  let fastest = Number.POSITIVE_INFINITY;
  for (let run = 0; run < 5; run++) {
    const began = performance.now();
    for (let index = 0; index < requests; index++) await limit.spend('alice');
    fastest = Math.min(fastest, (performance.now() - began) / requests);
  }
  // In milliseconds, and generous: a machine may be busy with other things.
  expect(fastest).toBeLessThan(0.01);
});
