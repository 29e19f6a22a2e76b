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
  it('is all connections as long as statements do not slow each other down', async () => {
    const pool = new SimulatedPool(10, () => 4);
    const { limits } = await ask(pool, createConcurrency(pool), { clients: 50, milliseconds: 2_000 });
    expect(new Set(limits)).toEqual(new Set([10]));
  });

  it.each([1, 2, 4])('follows what the database can do beside each other: %d', async (count) => {
    const pool = new SimulatedPool(20, processors(count, 4));
    const concurrency = createConcurrency(pool);
    // At a normal pace first, so that it is known what statements take.
    await ask(pool, concurrency, { clients: 1, milliseconds: 500 });
    const { last, perSecond } = await ask(pool, concurrency, { clients: 50, milliseconds: 5_000 });
    expect(average(last)).toBeLessThanOrEqual(2 * count + 2);
    expect(average(last)).toBeGreaterThanOrEqual(Math.max(count, 2));
    // All that it can do.
    expect(perSecond).toBeGreaterThan(0.9 * count * 250);
  });

  it('is found also where nobody has seen the database at rest', async () => {
    const pool = new SimulatedPool(20, processors(2, 4));
    const concurrency = createConcurrency(pool);
    const { perSecond } = await ask(pool, concurrency, { clients: 50, milliseconds: 5_000 });
    expect(perSecond).toBeGreaterThan(0.9 * 500);
  });

  it('is soon all connections again when the database is slower for a reason that is not load', async () => {
    const pool = new SimulatedPool(10, () => 2);
    const concurrency = createConcurrency(pool);
    await ask(pool, concurrency, { clients: 50, milliseconds: 500 });
    // Such as the network between them.
    pool.duration = () => 80;
    const { limits, last } = await ask(pool, concurrency, { clients: 50, milliseconds: 10_000 });
    expect(Math.min(...limits)).toBe(2);
    expect(new Set(last)).toEqual(new Set([10]));
  });

  it('is hardly moved by a few statements that take long among many that do not', async () => {
    const pool = new SimulatedPool(10);
    let statements = 0;
    pool.duration = () => (statements++ % 20 === 0 ? 200 : 2);
    const { limits } = await ask(pool, createConcurrency(pool), { clients: 8, milliseconds: 3_000 });
    expect(Math.min(...limits)).toBeGreaterThanOrEqual(7);
  });

  it('is not moved by what fails', async () => {
    const pool = new SimulatedPool(10);
    const concurrency = createConcurrency(pool);
    await ask(pool, concurrency, { clients: 50, milliseconds: 500 });
    for (let time = 0; time < 100; time++) {
      const end = pool.begin();
      await vi.advanceTimersByTimeAsync(100);
      end(new Error('gone'));
    }
    expect(concurrency.limit).toBe(10);
  });

  it('of a single connection is that one', async () => {
    const pool = new SimulatedPool(1, () => 4);
    const { limits } = await ask(pool, createConcurrency(pool), { clients: 5, milliseconds: 1_000 });
    expect(new Set(limits)).toEqual(new Set([1]));
  });
});

it('counts what runs, waits and is about to connect, but nothing that takes long', async () => {
  const pool = new SimulatedPool(4, () => 5_000);
  const concurrency = createConcurrency(pool);
  expect(concurrency.free()).toBe(4);
  for (let time = 0; time < 3; time++) void pool.run();
  expect(concurrency.free()).toBe(1);
  await vi.advanceTimersByTimeAsync(200);
  void pool.run();
  // Waits for a connection.
  void pool.run();
  expect(concurrency.free()).toBe(-1);
  await vi.advanceTimersByTimeAsync(51);
  expect(concurrency.free()).toBe(2);
  await vi.advanceTimersByTimeAsync(200);
  expect(concurrency.free()).toBe(3);
});
