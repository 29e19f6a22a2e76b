/** Load shedding before a simulated database with two processors, of which each statement takes one for 4 ms. */

import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createTurns } from '../../src/database/turns.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

/** How many requests a second the simulated database can serve. */
const capacity = 500;

/** @param duration how long, in milliseconds, a statement takes while so many run. */
function open(duration = (running: number) => 4 * Math.max(1, running / 2), connections = 10) {
  const turns = createTurns({ connections, maxWaiting: 100 });
  const { figures } = turns;
  let running = 0;

  async function runStatement(): Promise<void> {
    running++;
    expect(running).toBeLessThanOrEqual(connections);
    await new Promise<void>((settle) => void setTimeout(settle, duration(running)));
    running--;
  }

  /**
   * @param size how many statements the request runs at once.
   * @param steps how often it does so, one after the other.
   */
  async function ask(
    client: number,
    size = 1,
    steps = 1,
  ): Promise<{ client: number; isShed: boolean; took: number }> {
    const began = performance.now();
    const isShed = !turns.admit(client);
    const run = turns.forRequest(client);
    for (let step = 0; step < steps && !isShed; step++) {
      // A request does something else before, while others begin.
      await Promise.resolve();
      await Promise.all(Array.from({ length: size }, () => run(runStatement)));
    }
    return { client, isShed, took: performance.now() - began };
  }

  /**
   * Sends so many requests a second, whether or not there are responses.
   * @param next returns the client of the next request.
   * @param apart how long after each request the next one comes, as a multiple of the average.
   * @param stepsOf returns how many steps a request of the client has.
   */
  async function load(
    rate: number,
    milliseconds: number,
    next: () => number,
    apart = () => 1,
    stepsOf = (_client: number) => 1,
  ) {
    const asked: ReturnType<typeof ask>[] = [];
    for (let time = 1, due = 0; time <= milliseconds; time++) {
      for (; due < time; due += (apart() * 1_000) / rate) {
        const client = next();
        asked.push(ask(client, 1, stepsOf(client)));
      }
      await vi.advanceTimersByTimeAsync(1);
    }
    await vi.advanceTimersByTimeAsync(5_000);
    // Every request got its response.
    expect(figures.waiting).toBe(0);
    return Promise.all(asked);
  }

  /**
   * So many clients, each of which sends its next request when it has the response to the last one.
   * @param mayFail whether statements may wait too long for their turn, after which the client goes on.
   */
  async function loadInTurn(clients: number, milliseconds: number, mayFail = false) {
    const until = performance.now() + milliseconds;
    const outcomes: Awaited<ReturnType<typeof ask>>[] = [];
    for (let client = 0; client < clients; client++) {
      const askNext = async (): Promise<void> => {
        const outcome = await ask(client).catch((error: unknown) => {
          if (!mayFail) throw error;
        });
        if (outcome) outcomes.push(outcome);
        if (performance.now() < until) await askNext();
      };
      askNext();
    }
    await vi.advanceTimersByTimeAsync(milliseconds + 5_000);
    expect(figures.waiting).toBe(0);
    return outcomes;
  }

  /** So many live queries of each of so many users, each of which runs again as soon as it has run. Returns how many results they had. */
  async function runLive(users: number, each: number, milliseconds: number): Promise<number> {
    const until = performance.now() + milliseconds;
    let results = 0;
    const runAgain = async (user: number): Promise<void> => {
      await turns.forLiveQuery(user)(runStatement);
      results++;
      if (performance.now() < until) await runAgain(user);
    };
    await Promise.all(Array.from({ length: users * each }, (_, index) => runAgain(index % users)));
    return results;
  }
  return { ask, load, loadInTurn, runLive };
}

type Outcome = Awaited<ReturnType<ReturnType<typeof open>['load']>>[number];

const p99 = (outcomes: readonly Outcome[]) => {
  const times = outcomes.map(({ took }) => took).sort((one, other) => one - other);
  return times[Math.floor(times.length * 0.99)] ?? 0;
};

/** Random numbers of an exponential distribution with the mean 1; the same in each run, by a generator of Park and Miller. */
function createRandom() {
  let state = 55_555;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return -Math.log(state / 2_147_483_647);
  };
}

it('serves as many requests as the database can under any load, with little delay, and rejects the others at once', async () => {
  const { load } = open();
  let asked = 0;
  const nextClient = () => asked++ % 1_000;
  const normal = await load(0.8 * capacity, 6_000, nextClient, createRandom());
  expect(normal.filter(({ isShed }) => isShed)).toEqual([]);
  for (const factor of [2, 4, 8]) {
    const all = (await load(0.8 * factor * capacity, 4_000, nextClient)).slice(400 * factor);
    const accepted = all.filter(({ isShed }) => !isShed);
    expect(accepted.length / 3).toBeGreaterThan(0.9 * 0.8 * capacity);
    expect(p99(accepted)).toBeLessThan(3 * p99(normal));
    // All ten connections are busy, and as many requests wait as may.
    expect(p99(accepted)).toBeLessThan(45);
    expect(p99(all.filter(({ isShed }) => isShed))).toBeLessThan(50);
  }
  // The overload has no after-effects.
  const afterwards = await load(0.8 * capacity, 3_000, nextClient);
  expect(afterwards.filter(({ isShed }) => isShed)).toEqual([]);
});

it.each([1.2, 1.3, 1.4])(
  'keeps waits short when %d times as many requests as can be served arrive at random',
  async (factor) => {
    const exponential = createRandom();
    const { load } = open((running) => 2 * Math.max(1, running / 2) * (1 + exponential()));
    let asked = 0;
    const all = await load(factor * capacity, 8_000, () => asked++ % 1_000, exponential);
    const later = all.slice(all.length / 4);
    const accepted = later.filter(({ isShed }) => !isShed);
    expect(accepted.length / 6).toBeGreaterThan(0.9 * capacity);
    expect(p99(accepted)).toBeLessThan(90);
    expect(p99(later.filter(({ isShed }) => isShed))).toBeLessThan(50);
  },
);

it('has the requests of a client that floods the gateway wait behind each other, and rejects none of other clients', async () => {
  const { load } = open();
  let asked = 0;
  // One of 33 requests comes from one of twenty other clients.
  const flood = () => (asked++ % 33 === 0 ? 1 + (asked % 20) : 0);
  const all = (await load(8 * capacity, 4_000, flood)).slice(4_000);
  const others = all.filter(({ client }) => client !== 0);
  expect(others.length).toBeGreaterThan(300);
  expect(others.filter(({ isShed }) => isShed)).toEqual([]);
  expect(p99(others)).toBeLessThan(36);
});

it('serves the statements of requests that have begun, however many other requests come', async () => {
  const { load } = open();
  let asked = 0;
  // They are few, so the connections are always wanted for other requests.
  const isLarge = (client: number) => client % 100 === 0;
  const stepsOf = (client: number) => (isLarge(client) ? 5 : 1);
  const all = await load(
    4 * capacity,
    4_000,
    () => asked++ % 1_000,
    () => 1,
    stepsOf,
  );
  const accepted = all.slice(2_000).filter(({ isShed }) => !isShed);
  const large = accepted.filter(({ client }) => isLarge(client));
  expect(large.length).toBeGreaterThan(10);
  // Each of the five statements gets its turn as soon as the only one of another request.
  expect(p99(large)).toBeLessThan(5 * 45);
  expect(p99(accepted.filter(({ client }) => !isLarge(client)))).toBeLessThan(60);
});

it.each([
  [1, 1],
  [3, 10],
  [30, 10],
])(
  'serves requests while live queries of %d users always wait, with %d connections',
  async (users, connections) => {
    const { load, runLive } = open(undefined, connections);
    const running = runLive(users, 10, 4_000);
    let asked = 0;
    const all = await load(0.2 * capacity, 4_000, () => 1_000 + (asked++ % 50));
    expect(all.filter(({ isShed }) => isShed)).toEqual([]);
    expect(p99(all)).toBeLessThan(100);
    // The live queries have what is left.
    expect(await running).toBeGreaterThan(0.9 * 4 * (Math.min(connections, 2) - 0.4) * 250);
  },
);

it.each([5, 20])('serves a batch of %d while another client floods the gateway', async (size) => {
  const { ask } = open();
  const flood: ReturnType<typeof ask>[] = [];
  const batches: ReturnType<typeof ask>[] = [];
  for (let time = 1; time <= 6_000; time++) {
    flood.push(ask(0), ask(0));
    if (time > 2_000 && time % 500 === 250) batches.push(ask(1, size));
    await vi.advanceTimersByTimeAsync(1);
  }
  await vi.advanceTimersByTimeAsync(5_000);
  expect((await Promise.all(flood)).filter(({ isShed }) => isShed).length).toBeGreaterThan(6_000);
  expect(batches).toHaveLength(8);
  expect((await Promise.all(batches)).filter(({ isShed }) => isShed)).toEqual([]);
});

it.each([12, 30, 100])(
  'sheds no request of bursts of %d after an overload, while the database is idle in between',
  async (size) => {
    const { ask, load } = open();
    let asked = 0;
    const all = await load(4 * capacity, 2_000, () => asked++ % 1_000);
    expect(all.some(({ isShed }) => isShed)).toBe(true);
    // The database is idle for most of the time.
    for (let burst = 0; burst < 20; burst++) {
      const together = Array.from({ length: size }, (_, client) => ask(client));
      await vi.advanceTimersByTimeAsync(900);
      expect((await Promise.all(together)).filter(({ isShed }) => isShed)).toEqual([]);
    }
  },
);

it.each([20, 60, 200, 400])(
  'serves other clients while one floods the gateway, with statements that take %d ms',
  async (takes) => {
    const { load } = open(() => takes);
    let asked = 0;
    // One of 500 requests comes from another client.
    const all = await load(1_000, 10_000, () => (asked++ % 500 === 250 ? 1 : 0));
    const [others, flood] = [
      all.filter(({ client }) => client !== 0),
      all.filter(({ client }) => client === 0),
    ];
    expect(others).toHaveLength(20);
    expect(others.filter(({ isShed }) => isShed)).toEqual([]);
    expect(p99(others)).toBeLessThanOrEqual(2 * takes + 5);
    // After the overload was detected.
    const later = flood.slice(1_000);
    const accepted = later.filter(({ isShed }) => !isShed);
    // Besides those of the queue before, which are served first.
    expect(accepted.length).toBeGreaterThan((0.8 * 10 * 9_000) / takes - 100);
    expect(p99(accepted)).toBeLessThan(3 * takes);
    expect(p99(later.filter(({ isShed }) => isShed))).toBeLessThan(50);
  },
);

it.each([20, 40])(
  'detects overload also when a statement takes %d ms with a processor to itself',
  async (takes) => {
    const { load } = open((running) => takes * running);
    let asked = 0;
    const nextClient = () => asked++ % 1_000;
    const all = await load(4_000 / takes, 30_000, nextClient);
    const onset = all.slice(0, all.length / 3).filter(({ isShed }) => isShed);
    expect(p99(onset)).toBeLessThan(1_000);
    const rest = all.slice(all.length / 3);
    const accepted = rest.filter(({ isShed }) => !isShed);
    expect(accepted.length).toBeGreaterThan((0.9 * 20_000) / takes);
    // The time of ten statements at once, and the wait for their turn.
    expect(p99(accepted)).toBeLessThan(20 * takes);
    expect(p99(rest.filter(({ isShed }) => isShed))).toBeLessThan(100);
  },
);

it.each([32, 100])(
  'rejects no request of %d clients that each wait for a response before their next request',
  async (clients) => {
    const { loadInTurn } = open();
    const all = await loadInTurn(clients, 5_000);
    expect(all.length).toBeGreaterThan(0.9 * 5 * capacity);
    expect(all.filter(({ isShed }) => isShed)).toEqual([]);
    expect(p99(all)).toBeLessThan((1.3 * clients * 1_000) / capacity);
  },
);

it('serves other clients while one floods the gateway, with a single connection to the database', async () => {
  const { load } = open(() => 13, 1);
  let asked = 0;
  // One of 50 requests comes from one of five other clients.
  const all = (await load(500, 5_000, () => (asked++ % 50 === 0 ? 1 + (asked % 5) : 0))).slice(500);
  const [others, flood] = [
    all.filter(({ client }) => client !== 0),
    all.filter(({ client }) => client === 0),
  ];
  expect(others.filter(({ isShed }) => isShed)).toEqual([]);
  expect(p99(others)).toBeLessThanOrEqual(39);
  expect(flood.filter(({ isShed }) => !isShed).length).toBeGreaterThan(200);
});

it('rejects no request because some statements take longer than others', async () => {
  let asked = 0;
  const nextClient = () => asked++ % 200;
  // Statements are slow at random, or for most of each second.
  const random = open(() => ((asked * 7_919) % 10 < 7 ? 1 : 80), 40);
  const inTurn = open(() => (performance.now() % 1_000 < 150 ? 1 : 15), 40);
  for (const [{ load }, rate] of [
    [random, 250],
    [inTurn, 1_867],
  ] as const) {
    const all = await load(rate, 10_000, nextClient);
    expect(all.filter(({ isShed }) => isShed)).toEqual([]);
    expect(p99(all)).toBeLessThan(100);
  }
});

it('serves other requests while statements wait for a lock', async () => {
  let held = 0;
  const { load } = open((running) => (held-- > 0 ? 15_000 : 4 * Math.max(1, running / 2)));
  let asked = 0;
  const nextClient = () => asked++ % 1_000;
  // An overload first, so that few are let through at once.
  await load(4 * capacity, 3_000, nextClient);
  held = 3;
  // The statements that wait for the lock are among the first.
  const all = (await load(100, 20_000, nextClient)).slice(300);
  expect(all.filter(({ isShed }) => isShed)).toEqual([]);
  expect(p99(all)).toBeLessThan(50);
});

it.each([1_300, 5_000])(
  'rejects no request of 24 clients once a database that had stopped for %d ms is back',
  async (stops) => {
    let until = 0;
    const { loadInTurn } = open(
      (running) => Math.max(until - performance.now(), 0) + 4 * Math.max(1, running / 2),
    );
    until = performance.now() + stops;
    await loadInTurn(24, stops + 100, true);
    const afterwards = await loadInTurn(24, 5_000);
    expect(afterwards.length).toBeGreaterThan(0.9 * 5 * capacity);
    expect(afterwards.filter(({ isShed }) => isShed)).toEqual([]);
  },
);

it('serves all requests without delay again once a database that had stopped for 5 s is back', async () => {
  let until = 0;
  const { load } = open((running) => Math.max(until - performance.now(), 0) + 4 * Math.max(1, running / 2));
  let asked = 0;
  const nextClient = () => asked++ % 1_000;
  until = performance.now() + 5_000;
  const all = (await load(0.8 * capacity, 12_000, nextClient)).slice(0.8 * capacity * 6.5);
  expect(all.filter(({ isShed }) => isShed)).toEqual([]);
  expect(p99(all)).toBeLessThan(50);
});
