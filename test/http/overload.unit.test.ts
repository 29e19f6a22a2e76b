/** The load shedder before a database that exists only in what it takes: two processors, 4 ms of one for each statement. */

import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createConcurrency } from '../../src/database/concurrency.ts';
import { openExchange } from '../../src/http/exchange.ts';
import { createLoadShedder } from '../../src/http/loadShedding.ts';
import { nobodyListens } from '../support/exchanges.ts';
import { SimulatedPool } from '../support/simulatedPool.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

const capacity = 500;

function open() {
  const pool = new SimulatedPool(10, (running) => 4 * Math.max(1, running / 2));
  const concurrency = createConcurrency(pool);
  const { shed, figures } = createLoadShedder({ concurrency, maxWaiting: 100, begun: () => {} });

  async function ask(who: number): Promise<{ who: number; isTurnedAway: boolean; took: number }> {
    const began = performance.now();
    const incoming = { headers: {}, url: '/' } as IncomingMessage;
    const exchange = openExchange(incoming, new EventEmitter() as ServerResponse, nobodyListens);
    const isTurnedAway = await shed(exchange, () => who);
    if (!isTurnedAway) await pool.run();
    return { who, isTurnedAway, took: performance.now() - began };
  }

  /** So many requests a second, by the clock, of whoever it says. */
  async function load(rate: number, milliseconds: number, next: () => number) {
    const asked: ReturnType<typeof ask>[] = [];
    for (let time = 1; time <= milliseconds; time++) {
      while (asked.length < (time * rate) / 1_000) asked.push(ask(next()));
      await vi.advanceTimersByTimeAsync(1);
    }
    await vi.advanceTimersByTimeAsync(1_000);
    // Nobody is forgotten, however much there was.
    expect(figures.waiting).toBe(0);
    return Promise.all(asked);
  }
  return { load };
}

type Outcome = Awaited<ReturnType<ReturnType<typeof open>['load']>>[number];

const p99 = (outcomes: readonly Outcome[]) => {
  const times = outcomes.map(({ took }) => took).sort((one, other) => one - other);
  return times[Math.floor(times.length * 0.99)] ?? 0;
};

it('serves all that can be served under any load, hardly later than ever, and tells the others at once', async () => {
  const { load } = open();
  let asked = 0;
  const everybody = () => asked++ % 1_000;
  const usual = await load(0.8 * capacity, 3_000, everybody);
  expect(usual.filter(({ isTurnedAway }) => isTurnedAway)).toEqual([]);
  for (const factor of [2, 4, 8]) {
    const all = (await load(0.8 * factor * capacity, 4_000, everybody)).slice(400 * factor);
    const accepted = all.filter(({ isTurnedAway }) => !isTurnedAway);
    expect(accepted.length / 3).toBeGreaterThan(0.9 * 0.8 * capacity);
    expect(p99(accepted)).toBeLessThan(3 * Math.max(p99(usual), 12));
    expect(p99(all.filter(({ isTurnedAway }) => isTurnedAway))).toBeLessThan(50);
  }
  // And nothing is left of it.
  const afterwards = await load(0.8 * capacity, 3_000, everybody);
  expect(afterwards.filter(({ isTurnedAway }) => isTurnedAway)).toEqual([]);
});

it('has who floods wait behind themselves', async () => {
  const { load } = open();
  let asked = 0;
  // One of 33 requests is of one of twenty others.
  const flood = () => (asked++ % 33 === 0 ? 1 + (asked % 20) : 0);
  const all = (await load(8 * capacity, 4_000, flood)).slice(4_000);
  const others = all.filter(({ who }) => who !== 0);
  expect(others.length).toBeGreaterThan(300);
  expect(others.filter(({ isTurnedAway }) => isTurnedAway)).toEqual([]);
  expect(p99(others)).toBeLessThan(36);
});
