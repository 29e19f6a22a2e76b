/** A live query with several readers. Each test controls its feed, its token and its results. */

import { type ExecutionResult, GraphQLError } from 'graphql';
import { expect, it } from 'vitest';
import { clientError } from '../../src/errors.ts';
import { createKeyedQueue } from '../../src/graphql/keyedQueue.ts';
import { createLiveQuery } from '../../src/graphql/liveQuery.ts';
import type { Reader } from '../../src/graphql/readers.ts';
import { createWatchViewer } from '../../src/schema/subscriptions.ts';
import { createFakeFeed } from '../support/feed.ts';

const alice = { id: 1, tokenId: 10 };
const done = { done: true, value: undefined };

/** Waits until all pending work is done. */
const pendingWorkDone = () => new Promise((settle) => setTimeout(settle, 5));

function open() {
  const fake = createFakeFeed();
  const state = {
    /** The result of the operation. */
    result: { data: { n: 0 } } as ExecutionResult,
    runs: 0,
    /** Delays every run while it is set. */
    held: undefined as Promise<void> | undefined,
    isValid: async () => true,
    version: 0,
    ends: 0,
    reports: [] as [string, unknown][],
  };
  fake.feed.subscribe(() => state.version++);
  const query = createLiveQuery({
    viewer: alice,
    async execute() {
      state.runs++;
      const { result } = state;
      await state.held;
      return result;
    },
    watchViewer: createWatchViewer({
      feed: fake.feed,
      viewers: { isValid: () => state.isValid() },
      maxAge: 300,
      retryDelay: 1,
    }),
    inTurn: createKeyedQueue<number>(async () => {}),
    versionOf: () => (fake.feed.listening ? state.version : undefined),
    onEnd: () => state.ends++,
  });
  return {
    ...fake,
    state,
    join: (name = 'a reader') => query.join((error) => state.reports.push([name, error])),
    change(n: number) {
      state.result = { data: { n } };
      fake.announce(alice.id);
    },
    /** Delays every run until the returned function is called. */
    hold() {
      let release = () => {};
      state.held = new Promise((settle) => {
        release = () => {
          state.held = undefined;
          settle();
        };
      });
      return () => release();
    },
  };
}

/** The number in the next result of a reader. */
const nextOf = async (reader: Reader) => (await reader.next()).value?.data?.n;

/** The number that a reader gets once pending work is done, or 'nothing' if it still waits. */
async function soonOf(reader: Reader): Promise<unknown> {
  let given: unknown = 'nothing';
  nextOf(reader).then((n) => {
    given = n;
  });
  await pendingWorkDone();
  return given;
}

it('a live query runs once for all readers, which share one result object and its text', async () => {
  const { join, state, change } = open();
  const readers = [join(), join(), join()];
  const first = await Promise.all(readers.map((reader) => reader.next()));
  expect(first[0]?.value?.stringify()).toBe('{"data":{"n":0}}');
  expect(JSON.stringify(first[0]?.value)).toBe('{"data":{"n":0}}');
  const second = Promise.all(readers.map((reader) => reader.next()));
  change(1);
  const values = (await second).map(({ value }) => value);
  expect(values.map((value) => value?.data)).toEqual([{ n: 1 }, { n: 1 }, { n: 1 }]);
  expect(new Set(values).size).toBe(1);
  expect(state.runs).toBe(2);
});

it('a live query gives a reader that joins late the current result at once, without a run', async () => {
  const { join, state } = open();
  expect(await nextOf(join())).toBe(0);
  expect(await nextOf(join())).toBe(0);
  expect(state.runs).toBe(1);
});

it.each([
  ['after a change that was not announced yet', false],
  ['while the feed is interrupted', true],
])('a live query runs again for a reader that joins %s', async (_, isInterrupted) => {
  const { join, state, falter } = open();
  const early = join();
  expect(await nextOf(early)).toBe(0);
  state.result = { data: { n: 1 } };
  if (isInterrupted) falter();
  else state.version++;
  expect(await nextOf(join())).toBe(1);
  expect(await nextOf(early)).toBe(1);
  expect(state.runs).toBe(2);
});

it('a live query gives a reader that joins during a run, after a write, the result of a run that began after the write', async () => {
  const { join, state, hold } = open();
  const release = hold();
  const early = nextOf(join());
  await pendingWorkDone();
  expect(state.runs).toBe(1);
  state.result = { data: { n: 1 } };
  state.version++;
  const late = nextOf(join());
  await pendingWorkDone();
  release();
  expect(await early).toBe(0);
  expect(await late).toBe(1);
});

it('a live query runs only while a reader waits, and gives a slow reader the newest result', async () => {
  const { join, state, change } = open();
  const reader = join();
  await nextOf(reader);
  for (let n = 1; n <= 100; n++) change(n);
  await pendingWorkDone();
  expect(state.runs).toBe(1);
  expect(await nextOf(reader)).toBe(100);
  expect(state.runs).toBe(2);
  expect(await soonOf(reader)).toBe('nothing');
});

it('a live query is not delayed by a reader that does not ask', async () => {
  const { join, change } = open();
  const [slow, quick] = [join(), join()];
  await Promise.all([nextOf(slow), nextOf(quick)]);
  for (let n = 1; n <= 3; n++) {
    const next = nextOf(quick);
    change(n);
    expect(await next).toBe(n);
  }
  // The result is still current and needs no run.
  expect(await nextOf(slow)).toBe(3);
});

it('a live query gives no reader the same result twice in a row, whatever results the reader skipped', async () => {
  const { join, state, change } = open();
  const [slow, quick] = [join(), join()];
  await Promise.all([nextOf(slow), nextOf(quick)]);
  for (const n of [1, 0]) {
    const next = nextOf(quick);
    change(n);
    expect(await next).toBe(n);
  }
  expect(await soonOf(slow)).toBe('nothing');
  change(0);
  await pendingWorkDone();
  expect(state.runs).toBe(4);
  expect(await soonOf(quick)).toBe('nothing');
});

it('a live query delivers results even while changes come faster than runs end', async () => {
  const { join, hold, change } = open();
  const reader = join();
  await nextOf(reader);
  for (let n = 1; n <= 3; n++) {
    const release = hold();
    const next = nextOf(reader);
    change(n);
    await pendingWorkDone();
    change(n + 1);
    release();
    expect(await next).toBe(n);
  }
});

it('a live query ends with its last reader, and not before', async () => {
  const { join, state, followers } = open();
  const [first, second] = [join(), join()];
  await Promise.all([nextOf(first), nextOf(second)]);
  const waiting = first.next();
  first.leave();
  expect(await waiting).toEqual(done);
  expect(await first.next()).toEqual(done);
  expect([state.ends, followers()]).toEqual([0, 2]);
  second.leave();
  expect(state.ends).toBeGreaterThan(0);
  expect(followers()).toBe(1);
});

it('a live query ends for all readers when the token is revoked, also for those that have not read everything', async () => {
  const { join, state, announce, change } = open();
  const [waits, slow] = [join(), join()];
  await Promise.all([nextOf(waits), nextOf(slow)]);
  const changed = nextOf(waits);
  change(1);
  await changed;
  const last = waits.next();
  state.isValid = async () => false;
  announce(alice.id, 'ApiToken');
  expect(await last).toEqual(done);
  expect(await slow.next()).toEqual(done);
  expect(state.ends).toBeGreaterThan(0);
});

it('a live query withholds existing and running results while the token is rechecked', async () => {
  const { join, state, announce, change, hold } = open();
  const [reader, slow] = [join(), join()];
  await Promise.all([nextOf(reader), nextOf(slow)]);
  let settle: (isValid: boolean) => void = () => {};
  const startRecheck = () => {
    state.isValid = () => new Promise((response) => (settle = response));
    announce(alice.id, 'ApiToken');
  };
  const first = nextOf(reader);
  change(1);
  await first;
  startRecheck();
  expect(await soonOf(slow)).toBe('nothing');
  settle(true);
  // The reader `slow` has asked for this result above.
  await pendingWorkDone();
  const release = hold();
  const second = reader.next();
  change(2);
  await pendingWorkDone();
  startRecheck();
  release();
  const isSettled = Promise.race([second, pendingWorkDone().then(() => 'not settled')]);
  expect(await isSettled).toBe('not settled');
  settle(false);
  expect(await second).toEqual(done);
});

it('a live query withholds also an error that would end it while the token is rechecked', async () => {
  const { join, state, announce, hold } = open();
  const release = hold();
  state.result = { data: { n: null }, errors: [clientError('BAD_USER_INPUT', 'no')] };
  const next = join().next();
  await pendingWorkDone();
  state.isValid = async () => {
    await pendingWorkDone();
    return false;
  };
  announce(alice.id, 'ApiToken');
  release();
  expect(await next).toEqual(done);
});

it('a live query masks an internal error, reports it to one reader, and runs again until it succeeds', async () => {
  const { join, state } = open();
  const cause = new Error('the database is away');
  state.result = { data: { n: null }, errors: [new GraphQLError('broken', { originalError: cause })] };
  const [first, second] = [join('first'), join('second')];
  const steps = await Promise.all([first.next(), second.next()]);
  for (const { value } of steps)
    expect(JSON.parse(value?.stringify() ?? '')).toEqual({
      errors: [{ message: 'Internal server error', extensions: { code: 'INTERNAL_SERVER_ERROR' } }],
      data: { n: null },
    });
  expect(state.reports).toEqual([['first', cause]]);
  state.result = { data: { n: 1 } };
  expect(await Promise.all([nextOf(first), nextOf(second)])).toEqual([1, 1]);
});

it.each([
  ['an internal error', new GraphQLError('broken', { originalError: new Error() })],
  ['a temporary error', clientError('SERVICE_UNAVAILABLE', 'later', { retryAfter: 30 })],
])('a live query runs again for a reader that joins after %s, and for the others', async (_, error) => {
  const { join, state } = open();
  state.result = { data: { n: null }, errors: [error] };
  const early = join();
  expect(await nextOf(early)).toBe(null);
  state.result = { data: { n: 1 } };
  expect(await nextOf(join())).toBe(1);
  expect(await nextOf(early)).toBe(1);
});

it('a live query ends with an error that the request has caused, which each reader gets', async () => {
  const { join, state, hold } = open();
  state.result = { data: { n: null }, errors: [clientError('BAD_USER_INPUT', 'no')] };
  const release = hold();
  const [first, slow] = [join(), join()];
  const early = first.next();
  await pendingWorkDone();
  state.version++;
  const late = join();
  const lateNext = late.next();
  release();
  for (const { value } of [await early, await lateNext, await slow.next()])
    expect(value?.errors?.[0]?.message).toBe('no');
  for (const reader of [first, late, slow]) expect(await reader.next()).toEqual(done);
  expect(state.runs).toBe(1);
  expect(state.ends).toBeGreaterThan(0);
});
