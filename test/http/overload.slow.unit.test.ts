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

/** @param duration how long a statement takes that runs beside so many. */
function open(duration = (running: number) => 4 * Math.max(1, running / 2), connections = 10) {
  const pool = new SimulatedPool(connections, duration);
  const concurrency = createConcurrency(pool);
  const { shed, figures } = createLoadShedder({
    concurrency,
    statements: { users: 0, isWaiting: () => false, serve() {} },
    maxWaiting: 100,
    begun: () => {},
  });

  /** @param size how many statements it takes, at once. */
  async function ask(who: number, size = 1): Promise<{ who: number; isTurnedAway: boolean; took: number }> {
    const began = performance.now();
    const incoming = { headers: {}, url: '/' } as IncomingMessage;
    const exchange = openExchange(incoming, new EventEmitter() as ServerResponse, nobodyListens);
    const isTurnedAway = await shed(exchange, () => who, size);
    if (!isTurnedAway) await Promise.all(Array.from({ length: size }, () => pool.run()));
    return { who, isTurnedAway, took: performance.now() - began };
  }

  /**
   * So many requests a second, by the clock, of whoever it says.
   * @param apart how long after each the next one comes, as a multiple of what is usual.
   */
  async function load(rate: number, milliseconds: number, next: () => number, apart = () => 1) {
    const asked: ReturnType<typeof ask>[] = [];
    for (let time = 1, due = 0; time <= milliseconds; time++) {
      for (; due < time; due += (apart() * 1_000) / rate) asked.push(ask(next()));
      await vi.advanceTimersByTimeAsync(1);
    }
    await vi.advanceTimersByTimeAsync(5_000);
    // Nobody is forgotten, however much there was.
    expect(figures.waiting).toBe(0);
    return Promise.all(asked);
  }

  /** So many clients, each of whom asks again when they have their response. */
  async function loadInTurn(clients: number, milliseconds: number) {
    const until = performance.now() + milliseconds;
    const outcomes: Awaited<ReturnType<typeof ask>>[] = [];
    for (let who = 0; who < clients; who++) {
      const askAgain = async (): Promise<void> => {
        outcomes.push(await ask(who));
        if (performance.now() < until) await askAgain();
      };
      askAgain();
    }
    await vi.advanceTimersByTimeAsync(milliseconds + 5_000);
    expect(figures.waiting).toBe(0);
    return outcomes;
  }
  return { ask, load, loadInTurn };
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

it.each([1.2, 1.3, 1.4])(
  'has nobody wait for long where a little more comes than can be served, at random: %d times as much',
  async (factor) => {
    // Always the same, by a generator of Park and Miller.
    let state = 55_555;
    const exponential = () => {
      state = (state * 48_271) % 2_147_483_647;
      return -Math.log(state / 2_147_483_647);
    };
    const { load } = open((running) => 2 * Math.max(1, running / 2) * (1 + exponential()));
    let asked = 0;
    const all = await load(factor * capacity, 8_000, () => asked++ % 1_000, exponential);
    const later = all.slice(all.length / 4);
    const accepted = later.filter(({ isTurnedAway }) => !isTurnedAway);
    expect(accepted.length / 6).toBeGreaterThan(0.9 * capacity);
    expect(p99(accepted)).toBeLessThan(60);
    expect(p99(later.filter(({ isTurnedAway }) => isTurnedAway))).toBeLessThan(50);
  },
);

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

it.each([5, 20])('serves a batch of %d beside who floods', async (size) => {
  const { ask } = open();
  const flood: ReturnType<typeof ask>[] = [];
  const batches: ReturnType<typeof ask>[] = [];
  for (let time = 1; time <= 6_000; time++) {
    flood.push(ask(0), ask(0));
    if (time > 2_000 && time % 500 === 250) batches.push(ask(1, size));
    await vi.advanceTimersByTimeAsync(1);
  }
  await vi.advanceTimersByTimeAsync(5_000);
  expect((await Promise.all(flood)).filter(({ isTurnedAway }) => isTurnedAway).length).toBeGreaterThan(6_000);
  expect(batches).toHaveLength(8);
  expect((await Promise.all(batches)).filter(({ isTurnedAway }) => isTurnedAway)).toEqual([]);
});

it.each([12, 30, 100])('is over when requests that come %d at once are soon done', async (size) => {
  const { ask, load } = open();
  let asked = 0;
  const all = await load(4 * capacity, 2_000, () => asked++ % 1_000);
  expect(all.some(({ isTurnedAway }) => isTurnedAway)).toBe(true);
  // The database has nothing to do for most of the time.
  for (let burst = 0; burst < 20; burst++) {
    const together = Array.from({ length: size }, (_, who) => ask(who));
    await vi.advanceTimersByTimeAsync(900);
    expect((await Promise.all(together)).filter(({ isTurnedAway }) => isTurnedAway)).toEqual([]);
  }
});

it.each([20, 60, 200, 400])(
  'has others served beside who floods, also where a statement takes %d ms',
  async (takes) => {
    const { load } = open(() => takes);
    let asked = 0;
    // One of 500 requests is of somebody else.
    const all = await load(1_000, 10_000, () => (asked++ % 500 === 250 ? 1 : 0));
    const [others, flood] = [all.filter(({ who }) => who !== 0), all.filter(({ who }) => who === 0)];
    expect(others).toHaveLength(20);
    expect(others.filter(({ isTurnedAway }) => isTurnedAway)).toEqual([]);
    expect(p99(others)).toBeLessThanOrEqual(2 * takes + 5);
    // When it is known that there is too much.
    const later = flood.slice(1_000);
    const accepted = later.filter(({ isTurnedAway }) => !isTurnedAway);
    expect(accepted.length).toBeGreaterThan((0.8 * 10 * 9_000) / takes - 40);
    expect(p99(accepted)).toBeLessThan(3 * takes);
    expect(p99(later.filter(({ isTurnedAway }) => isTurnedAway))).toBeLessThan(50);
  },
);

it.each([20, 40])(
  'notices overload also where statements that have a processor alone take %d ms',
  async (takes) => {
    const { load } = open((running) => takes * running);
    let asked = 0;
    const everybody = () => asked++ % 1_000;
    const all = await load(4_000 / takes, 30_000, everybody);
    const onset = all.slice(0, all.length / 3).filter(({ isTurnedAway }) => isTurnedAway);
    expect(p99(onset)).toBeLessThan(1_000);
    const rest = all.slice(all.length / 3);
    const accepted = rest.filter(({ isTurnedAway }) => !isTurnedAway);
    expect(accepted.length).toBeGreaterThan((0.9 * 20_000) / takes);
    // Three of them at once, and waiting.
    expect(p99(accepted)).toBeLessThan(7 * takes);
    expect(p99(rest.filter(({ isTurnedAway }) => isTurnedAway))).toBeLessThan(100);
  },
);

it.each([32, 100])('turns none of %d clients away that wait for each other', async (clients) => {
  const { loadInTurn } = open();
  const all = await loadInTurn(clients, 5_000);
  expect(all.length).toBeGreaterThan(0.9 * 5 * capacity);
  expect(all.filter(({ isTurnedAway }) => isTurnedAway)).toEqual([]);
  expect(p99(all)).toBeLessThan((1.3 * clients * 1_000) / capacity);
});

it('has others served beside who floods where only one statement runs at a time', async () => {
  const { load } = open(() => 13, 1);
  let asked = 0;
  // One of 50 requests is of one of five others.
  const all = (await load(500, 5_000, () => (asked++ % 50 === 0 ? 1 + (asked % 5) : 0))).slice(500);
  const [others, flood] = [all.filter(({ who }) => who !== 0), all.filter(({ who }) => who === 0)];
  expect(others.filter(({ isTurnedAway }) => isTurnedAway)).toEqual([]);
  expect(p99(others)).toBeLessThanOrEqual(39);
  expect(flood.filter(({ isTurnedAway }) => !isTurnedAway).length).toBeGreaterThan(250);
});

it('turns nobody away because some statements are dearer than others', async () => {
  let asked = 0;
  const everybody = () => asked++ % 200;
  // By chance, or for a while each second.
  const random = open(() => ((asked * 7_919) % 10 < 7 ? 1 : 80), 40);
  const inTurn = open(() => (performance.now() % 1_000 < 150 ? 1 : 15), 40);
  for (const [{ load }, rate] of [
    [random, 250],
    [inTurn, 1_867],
  ] as const) {
    const all = await load(rate, 10_000, everybody);
    expect(all.filter(({ isTurnedAway }) => isTurnedAway)).toEqual([]);
    expect(p99(all)).toBeLessThan(100);
  }
});

it('serves others beside statements that wait for a lock', async () => {
  let held = 0;
  const { load } = open((running) => (held-- > 0 ? 15_000 : 4 * Math.max(1, running / 2)));
  let asked = 0;
  const everybody = () => asked++ % 1_000;
  // So that few are let through.
  await load(4 * capacity, 3_000, everybody);
  held = 3;
  // Those that wait for the lock are among the first.
  const all = (await load(100, 20_000, everybody)).slice(300);
  expect(all.filter(({ isTurnedAway }) => isTurnedAway)).toEqual([]);
  expect(p99(all)).toBeLessThan(50);
});

it.each([1_300, 5_000])(
  'turns no more of 24 clients away that ask again and again, after a database that stopped for %d ms',
  async (stops) => {
    let until = 0;
    const { loadInTurn } = open(
      (running) => Math.max(until - performance.now(), 0) + 4 * Math.max(1, running / 2),
    );
    until = performance.now() + stops;
    await loadInTurn(24, stops + 100);
    const afterwards = await loadInTurn(24, 5_000);
    expect(afterwards.length).toBeGreaterThan(0.9 * 5 * capacity);
    expect(afterwards.filter(({ isTurnedAway }) => isTurnedAway)).toEqual([]);
  },
);

it('is itself again after a database that stopped for a while', async () => {
  let until = 0;
  const { load } = open((running) => Math.max(until - performance.now(), 0) + 4 * Math.max(1, running / 2));
  let asked = 0;
  const everybody = () => asked++ % 1_000;
  until = performance.now() + 5_000;
  const all = (await load(0.8 * capacity, 12_000, everybody)).slice(0.8 * capacity * 6.5);
  expect(all.filter(({ isTurnedAway }) => isTurnedAway)).toEqual([]);
  expect(p99(all)).toBeLessThan(50);
});
