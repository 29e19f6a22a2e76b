import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createConcurrency } from '../../src/database/concurrency.ts';
import { SimulatedPool } from '../support/simulatedPool.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

/** Has this many clients run one statement after the other for this long. Returns the limit over time, and the throughput. */
async function runClients(
  pool: SimulatedPool,
  concurrency: ReturnType<typeof createConcurrency>,
  { clients, milliseconds }: { clients: number; milliseconds: number },
) {
  let isOver = false;
  let done = 0;
  const limits: number[] = [];
  const waiting: (() => void)[] = [];
  concurrency.onEnded(() => queueMicrotask(() => concurrency.free() > 0 && waiting.shift()?.()));
  const running = Array.from({ length: clients }, async () => {
    while (!isOver) {
      while (concurrency.free() <= 0) await new Promise<void>((settle) => waiting.push(settle));
      await pool.run();
      done++;
    }
  });
  for (let time = 0; time < milliseconds; time += 10) {
    await vi.advanceTimersByTimeAsync(10);
    limits.push(concurrency.limit);
  }
  isOver = true;
  for (let time = 0; time < 20_000; time += 100) {
    await vi.advanceTimersByTimeAsync(100);
    for (const settle of waiting.splice(0)) settle();
  }
  await Promise.all(running);
  return { limits, last: limits.slice(-200), perSecond: (done / milliseconds) * 1_000 };
}

const average = (numbers: readonly number[]) =>
  numbers.reduce((total, number) => total + number, 0) / numbers.length;

/** How long a statement takes in a database with this many processors, each of which needs this long for a statement. */
const processors = (count: number, milliseconds: number) => (running: number) =>
  milliseconds * Math.max(1, running / count);

describe('the concurrency limit', () => {
  it('is the size of the pool while statements do not slow each other down, except when it tries fewer', async () => {
    const pool = new SimulatedPool(10, () => 16);
    const { limits, perSecond } = await runClients(pool, createConcurrency(pool), {
      clients: 50,
      milliseconds: 10_000,
    });
    expect(Math.min(...limits)).toBe(8);
    expect(average(limits)).toBeGreaterThan(9.4);
    expect(perSecond).toBeGreaterThan(0.94 * 625);
  });

  it.each([1, 2, 4])('follows how many statements the database can run in parallel: %d', async (count) => {
    const pool = new SimulatedPool(20, processors(count, 4));
    const { last, perSecond } = await runClients(pool, createConcurrency(pool), {
      clients: 50,
      milliseconds: 6_000,
    });
    expect(average(last)).toBeLessThanOrEqual(count + 1.6);
    expect(average(last)).toBeGreaterThanOrEqual(Math.max(count - 0.5, 2));
    // Nearly all that the database can do.
    expect(perSecond).toBeGreaterThan(0.9 * count * 250);
  });

  it('is the size of the pool while statements take only a few milliseconds', async () => {
    const pool = new SimulatedPool(20, processors(3, 1));
    const concurrency = createConcurrency(pool);
    const { limits, perSecond } = await runClients(pool, concurrency, { clients: 50, milliseconds: 6_000 });
    expect(average(limits)).toBeGreaterThan(19.5);
    expect(perSecond).toBeGreaterThan(0.9 * 3_000);
    // It is lowered when statements become slow, and raised again when they are fast.
    pool.duration = processors(1, 20);
    const slow = await runClients(pool, concurrency, { clients: 50, milliseconds: 20_000 });
    expect(average(slow.last)).toBeLessThan(4);
    pool.duration = processors(3, 1);
    const fast = await runClients(pool, concurrency, { clients: 50, milliseconds: 6_000 });
    expect(average(fast.last)).toBeGreaterThan(19.5);
  });

  it('adapts when the bottleneck of the database changes', async () => {
    const pool = new SimulatedPool(10, () => 4);
    const concurrency = createConcurrency(pool);
    for (let time = 0; time < 2; time++) {
      pool.duration = processors(2, 4);
      const busy = await runClients(pool, concurrency, { clients: 50, milliseconds: 6_000 });
      expect(average(busy.last)).toBeLessThan(4);
      // The processors are no bottleneck any more, since each statement waits for the network.
      pool.duration = () => 40;
      const slow = await runClients(pool, concurrency, { clients: 50, milliseconds: 8_000 });
      expect(average(slow.last)).toBeGreaterThan(9);
    }
  });

  it('is not lowered by a changing mix of cheap and expensive statements', async () => {
    const pool = new SimulatedPool(10);
    let statements = 0;
    // Mostly cheap for a while, and then mostly expensive.
    const isExpensive = () => (statements++ % 500 < 400 ? statements % 20 === 0 : statements % 3 !== 0);
    pool.duration = () => (isExpensive() ? 60 : 2);
    const { limits } = await runClients(pool, createConcurrency(pool), { clients: 50, milliseconds: 20_000 });
    expect(average(limits)).toBeGreaterThan(8.5);
  });

  it('is the size of the pool again once statements hardly have to wait', async () => {
    const pool = new SimulatedPool(10, processors(1, 4));
    const concurrency = createConcurrency(pool);
    await runClients(pool, concurrency, { clients: 50, milliseconds: 5_000 });
    expect(concurrency.limit).toBeLessThan(4);
    await runClients(pool, concurrency, { clients: 1, milliseconds: 5_000 });
    expect(concurrency.limit).toBe(10);
  });

  it('is not lowered by a pause, in which no statement could end', async () => {
    const pool = new SimulatedPool(10, processors(3, 1));
    const concurrency = createConcurrency(pool);
    await runClients(pool, concurrency, { clients: 50, milliseconds: 1_500 });
    pool.begin()();
    expect(concurrency.limit).toBe(10);
  });

  it('is raised while statements that wait for a lock take up all of it', async () => {
    const pool = new SimulatedPool(10, processors(1, 4));
    const concurrency = createConcurrency(pool);
    await runClients(pool, concurrency, { clients: 50, milliseconds: 5_000 });
    const held = Array.from({ length: concurrency.limit }, () => pool.begin());
    expect(concurrency.free()).toBe(0);
    for (let time = 0; time < 3; time++) {
      const before = concurrency.limit;
      await vi.advanceTimersByTimeAsync(1_000);
      expect(concurrency.free() + concurrency.limit).toBe(2 * before - held.length);
      await vi.advanceTimersByTimeAsync(1);
      expect(concurrency.free()).toBeGreaterThan(0);
      expect(concurrency.limit).toBeGreaterThan(before);
      while (concurrency.free() > 0) held.push(pool.begin());
    }
  });

  it.each([1, 2])('of a pool with %d connections is its size', async (connections) => {
    const pool = new SimulatedPool(connections, () => 4);
    const { limits } = await runClients(pool, createConcurrency(pool), { clients: 5, milliseconds: 2_000 });
    expect(new Set(limits)).toEqual(new Set([connections]));
  });
});

it('free() subtracts statements that run, wait for a connection, or are about to connect', () => {
  const pool = new SimulatedPool(4, () => 5_000);
  const concurrency = createConcurrency(pool);
  expect(concurrency.free()).toBe(4);
  for (let time = 0; time < 3; time++) void pool.run();
  expect(concurrency.free()).toBe(1);
  void pool.run();
  // Waits for a connection.
  void pool.run();
  expect(concurrency.free()).toBe(-1);
});
