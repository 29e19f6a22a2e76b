/** The requests that an upstream allows for an account. */

import { beforeEach, describe, expect, it, vi } from 'vitest';
import {
  type Budget,
  createBudget,
  type Priority,
} from '../../../../src/extensions/upstream/client/budget.ts';

beforeEach(() => void vi.useFakeTimers());

/** A budget that advances the clock instead of waiting. */
const createQuickBudget = (rate: number) =>
  createBudget(rate, undefined, async (milliseconds) => {
    vi.advanceTimersByTime(milliseconds);
  });

/** The times, in seconds, at which so many requests are sent one after the other. */
async function timesOf(budget: Budget, count: number, priority: Priority): Promise<number[]> {
  const began = performance.now();
  const times: number[] = [];
  for (let index = 0; index < count; index++) {
    await budget.take(priority);
    times.push((performance.now() - began) / 1_000);
  }
  return times;
}

/** The most requests in any minute. */
const mostInAMinute = (times: readonly number[]) =>
  Math.max(...times.map((from) => times.filter((time) => time >= from && time <= from + 60).length));

describe('a budget', () => {
  it.each([
    ['demand', 50],
    ['refresh', 47],
    ['details', 40],
  ] as const)(
    'lets requests for %s use all of their share of any minute, and no more',
    async (priority, share) => {
      const times = await timesOf(createQuickBudget(50), 250, priority);
      expect(mostInAMinute(times)).toBe(share);
      expect(times.at(-1)).toBeLessThan((250 / share) * 61);
    },
  );

  it('lets more urgent requests use at once what less urgent ones may not', async () => {
    const budget = createQuickBudget(60);
    await timesOf(budget, 48, 'details');
    expect(budget.delayFor(1, 'details')).toBeGreaterThan(0);
    expect(budget.delayFor(9, 'refresh')).toBe(0);
    expect(budget.delayFor(10, 'refresh')).toBeGreaterThan(0);
    expect(budget.available()).toBe(12);
    expect(budget.delayFor(13)).toBeGreaterThan(0);
  });

  it('counts requests that did not wait for it, and tells when so many more may be sent', () => {
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

  it('without a limit has requests wait only during a pause', async () => {
    const budget = createQuickBudget(0);
    expect(await timesOf(budget, 500, 'details')).toEqual(Array(500).fill(0));
    expect(budget.available()).toBe(Number.POSITIVE_INFINITY);
    budget.pauseFor(3_000);
    expect(budget.available()).toBe(0);
    expect(await timesOf(budget, 2, 'demand')).toEqual([3, 3]);
  });

  it('has room for refreshes even if requests that cannot wait use all of it', async () => {
    const budget = createQuickBudget(50);
    for (let times = 0; times < 50; times++) budget.note();
    // 15 %, rounded up.
    expect(await timesOf(budget, 8, 'refresh')).toEqual(Array(8).fill(0));
    expect([budget.delayFor(1, 'refresh'), budget.delayFor(2, 'refresh')]).toEqual([60_500, 60_500]);
    expect(budget.delayFor(1, 'details')).toBe(60_500);
    expect(budget.available()).toBe(0);
  });

  it('lets each priority send something, however small it is', async () => {
    const budget = createQuickBudget(1);
    expect([budget.delayFor(1, 'details'), budget.delayFor(2), budget.delayFor(1, 'refresh')]).toEqual([
      0, 60_500, 0,
    ]);
    await budget.take('details');
    budget.pauseFor(7_000);
    expect([budget.delayFor(1, 'refresh'), budget.delayFor(1), budget.available()]).toEqual([
      7_000, 60_500, 0,
    ]);
  });

  it('pauses for an hour at most, in one wait', async () => {
    const wait = vi.fn(async (milliseconds: number) => {
      vi.advanceTimersByTime(milliseconds);
    });
    const budget = createBudget(60, undefined, wait);
    budget.pauseFor(365 * 24 * 60 * 60_000);
    budget.pauseFor(1_000);
    await budget.take('refresh');
    expect(wait.mock.calls.map(([milliseconds]) => milliseconds)).toEqual([60 * 60_000]);
  });
});
