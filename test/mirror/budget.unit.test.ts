/** The requests that an upstream allows for an account. */

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Budget, createBudget, type Priority } from '../../src/mirror/budget.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A budget for which time passes as soon as it waits. */
const createQuickBudget = (rate: number) =>
  createBudget(rate, undefined, async (milliseconds) => {
    vi.setSystemTime(Date.now() + milliseconds);
  });

/** The times, in seconds, at which so many requests are sent one after the other. */
async function timesOf(budget: Budget, count: number, priority: Priority): Promise<number[]> {
  const began = Date.now();
  const times: number[] = [];
  for (let index = 0; index < count; index++) {
    await budget.take(priority);
    times.push((Date.now() - began) / 1_000);
  }
  return times;
}

/** The most requests in any minute. */
const mostInAMinute = (times: readonly number[]) =>
  Math.max(...times.map((from) => times.filter((time) => time >= from && time <= from + 60).length));

describe('a budget', () => {
  it.each([
    ['demand', 60],
    ['refresh', 57],
    ['details', 48],
  ] as const)(
    'lets requests for %s use no more than their share of any minute, and all of that',
    async (priority, share) => {
      const times = await timesOf(createQuickBudget(60), 250, priority);
      expect(mostInAMinute(times)).toBe(share);
      expect(times.at(-1)).toBeLessThan((250 / share) * 61);
    },
  );

  it('leaves what the less urgent may not use to the more urgent, at once', async () => {
    const budget = createQuickBudget(60);
    await timesOf(budget, 48, 'details');
    expect(budget.delayFor(1, 'details')).toBeGreaterThan(0);
    expect(budget.delayFor(9, 'refresh')).toBe(0);
    expect(budget.delayFor(10, 'refresh')).toBeGreaterThan(0);
    expect(budget.available()).toBe(12);
    expect(budget.delayFor(13)).toBeGreaterThan(0);
  });

  it('counts what is sent beside it, and says when so many may be sent', () => {
    const onSent = vi.fn();
    const budget = createBudget(10, onSent);
    for (let second = 0; second < 10; second++) {
      budget.note();
      vi.advanceTimersByTime(1_000);
    }
    expect(budget.available()).toBe(0);
    expect(budget.delayFor(1)).toBe(50_500);
    expect(budget.delayFor(3)).toBe(52_500);
    expect(budget.delayFor(100)).toBe(60_500);
    vi.advanceTimersByTime(52_500);
    expect(budget.available()).toBe(3);
    expect(onSent).toHaveBeenCalledTimes(10);
  });

  it('without a limit has everybody wait for nothing but a pause', async () => {
    const budget = createQuickBudget(0);
    expect(await timesOf(budget, 500, 'details')).toEqual(Array(500).fill(0));
    expect(budget.available()).toBe(Number.POSITIVE_INFINITY);
    budget.pauseUntil(Date.now() + 3_000);
    expect(budget.available()).toBe(0);
    expect(await timesOf(budget, 2, 'demand')).toEqual([3, 3]);
  });

  it('leaves to what nobody can hold back what that used, and a half more', () => {
    const budget = createBudget(60);
    for (let times = 0; times < 11; times++) budget.note();
    // 60 less 11 and a half of that again are 43, of which 11 are sent.
    expect(budget.delayFor(32, 'arrival')).toBe(0);
    expect(budget.delayFor(33, 'arrival')).toBeGreaterThan(0);
    expect(budget.delayFor(32, 'details')).toBe(0);
    expect(budget.delayFor(33, 'details')).toBeGreaterThan(0);
  });

  it('has room for refreshes though what nobody can hold back takes all of it', async () => {
    const budget = createQuickBudget(60);
    for (let times = 0; times < 60; times++) budget.note();
    expect(await timesOf(budget, 9, 'refresh')).toEqual(Array(9).fill(0));
    expect(budget.delayFor(1, 'refresh')).toBe(60_500);
    expect(budget.delayFor(1, 'details')).toBe(60_500);
    expect(budget.available()).toBe(0);
  });

  it('pauses for an hour at most, and waits for that once', async () => {
    const wait = vi.fn(async (milliseconds: number) => {
      vi.setSystemTime(Date.now() + milliseconds);
    });
    const budget = createBudget(60, undefined, wait);
    budget.pauseUntil(Date.now() + 365 * 24 * 60 * 60_000);
    budget.pauseUntil(Date.now() + 1_000);
    await budget.take('refresh');
    expect(wait.mock.calls.map(([milliseconds]) => milliseconds)).toEqual([60 * 60_000]);
  });

  it('stops waiting when it is told to', async () => {
    const budget = createBudget(1);
    await budget.take('demand');
    const stop = new AbortController();
    const waiting = budget.take('demand', stop.signal);
    stop.abort();
    await expect(waiting).rejects.toThrow();
  });
});
