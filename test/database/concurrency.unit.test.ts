import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createConcurrency } from '../../src/database/concurrency.ts';
import { SimulatedPool } from '../support/simulatedPool.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

/** Has so many clients ask one thing after the other for so long, and says what the limit was meanwhile, and did. */
async function ask(
  pool: SimulatedPool,
  concurrency: ReturnType<typeof createConcurrency>,
  { clients, milliseconds }: { clients: number; milliseconds: number },
) {
  let isOver = false;
  let done = 0;
  const limits: number[] = [];
  const waiting: (() => void)[] = [];
  concurrency.onEnded(() => queueMicrotask(() => concurrency.free() > 0 && waiting.shift()?.()));
  const asking = Array.from({ length: clients }, async () => {
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
  await Promise.all(asking);
  return { limits, last: limits.slice(-200), perSecond: (done / milliseconds) * 1_000 };
}

const average = (numbers: readonly number[]) =>
  numbers.reduce((total, number) => total + number, 0) / numbers.length;

/** A database with so many processors, each of which is busy with a statement for so long. */
const processors = (count: number, milliseconds: number) => (running: number) =>
  milliseconds * Math.max(1, running / count);

describe('the limit', () => {
  it('is all connections as long as statements do not slow each other down, but for a look at fewer', async () => {
    const pool = new SimulatedPool(10, () => 16);
    const { limits, perSecond } = await ask(pool, createConcurrency(pool), {
      clients: 50,
      milliseconds: 10_000,
    });
    expect(Math.min(...limits)).toBe(8);
    expect(average(limits)).toBeGreaterThan(9.4);
    expect(perSecond).toBeGreaterThan(0.94 * 625);
  });

  it.each([1, 2, 4])('follows what the database can do beside each other: %d', async (count) => {
    const pool = new SimulatedPool(20, processors(count, 4));
    const { last, perSecond } = await ask(pool, createConcurrency(pool), {
      clients: 50,
      milliseconds: 6_000,
    });
    expect(average(last)).toBeLessThanOrEqual(count + 1.6);
    expect(average(last)).toBeGreaterThanOrEqual(Math.max(count - 0.5, 2));
    // All that it can do.
    expect(perSecond).toBeGreaterThan(0.9 * count * 250);
  });

  it('is all connections where what is asked is done within a few milliseconds anyhow', async () => {
    const pool = new SimulatedPool(20, processors(3, 1));
    const concurrency = createConcurrency(pool);
    const { limits, perSecond } = await ask(pool, concurrency, { clients: 50, milliseconds: 6_000 });
    expect(average(limits)).toBeGreaterThan(19.5);
    expect(perSecond).toBeGreaterThan(0.9 * 3_000);
    // Not where it is done slowly, and at once where it is done soon again.
    pool.duration = processors(1, 20);
    const slow = await ask(pool, concurrency, { clients: 50, milliseconds: 20_000 });
    expect(average(slow.last)).toBeLessThan(4);
    pool.duration = processors(3, 1);
    const soon = await ask(pool, concurrency, { clients: 50, milliseconds: 6_000 });
    expect(average(soon.last)).toBeGreaterThan(19.5);
  });

  it('follows a database that is soon something else', async () => {
    const pool = new SimulatedPool(10, () => 4);
    const concurrency = createConcurrency(pool);
    for (let time = 0; time < 2; time++) {
      pool.duration = processors(2, 4);
      const busy = await ask(pool, concurrency, { clients: 50, milliseconds: 6_000 });
      expect(average(busy.last)).toBeLessThan(4);
      // Its processors do no more, since each statement waits for the network.
      pool.duration = () => 40;
      const slow = await ask(pool, concurrency, { clients: 50, milliseconds: 8_000 });
      expect(average(slow.last)).toBeGreaterThan(9);
    }
  });

  it('does not follow what statements cost', async () => {
    const pool = new SimulatedPool(10);
    let statements = 0;
    // Mostly cheap for a while, and then mostly dear.
    const isDear = () => (statements++ % 500 < 400 ? statements % 20 === 0 : statements % 3 !== 0);
    pool.duration = () => (isDear() ? 60 : 2);
    const { limits } = await ask(pool, createConcurrency(pool), { clients: 50, milliseconds: 20_000 });
    expect(average(limits)).toBeGreaterThan(8.5);
  });

  it('is all connections where hardly anybody has to wait', async () => {
    const pool = new SimulatedPool(10, processors(1, 4));
    const concurrency = createConcurrency(pool);
    await ask(pool, concurrency, { clients: 50, milliseconds: 5_000 });
    expect(concurrency.limit).toBeLessThan(4);
    await ask(pool, concurrency, { clients: 1, milliseconds: 5_000 });
    expect(concurrency.limit).toBe(10);
  });

  it('makes room for others beside what waits for a lock', async () => {
    const pool = new SimulatedPool(10, processors(1, 4));
    const concurrency = createConcurrency(pool);
    await ask(pool, concurrency, { clients: 50, milliseconds: 5_000 });
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

  it.each([1, 2])('of %d connections is that many', async (connections) => {
    const pool = new SimulatedPool(connections, () => 4);
    const { limits } = await ask(pool, createConcurrency(pool), { clients: 5, milliseconds: 2_000 });
    expect(new Set(limits)).toEqual(new Set([connections]));
  });
});

it('counts what runs, waits and is about to connect', () => {
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
