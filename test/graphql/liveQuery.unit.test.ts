/** One computation for many readers, with a feed, a token and results that do what the test says. */

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

/** Waits until everything that is under way is done. */
const underwayDone = () => new Promise((settle) => setTimeout(settle, 5));

function open() {
  const fake = createFakeFeed();
  const state = {
    /** What the operation gives. */
    result: { data: { n: 0 } } as ExecutionResult,
    runs: 0,
    /** Holds up what is run, while it is there. */
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
    /** Holds up what is run until the returned function is called. */
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

/** The number that a reader is given next. */
const nextOf = async (reader: Reader) => (await reader.next()).value?.data?.n;

/** What a reader is given by now, 'nothing' if they still wait. */
async function soonOf(reader: Reader): Promise<unknown> {
  let given: unknown = 'nothing';
  nextOf(reader).then((n) => {
    given = n;
  });
  await underwayDone();
  return given;
}

it('runs once for all readers, who get one object with one text', async () => {
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

it('gives one who joins late the current result at once, without a run', async () => {
  const { join, state } = open();
  expect(await nextOf(join())).toBe(0);
  expect(await nextOf(join())).toBe(0);
  expect(state.runs).toBe(1);
});

it.each([
  ['after a change that was not announced yet', false],
  ['while changes are not heard of', true],
])('gives one who joins %s what is so then', async (_, isUnheard) => {
  const { join, state, falter } = open();
  const early = join();
  expect(await nextOf(early)).toBe(0);
  state.result = { data: { n: 1 } };
  if (isUnheard) falter();
  else state.version++;
  expect(await nextOf(join())).toBe(1);
  expect(await nextOf(early)).toBe(1);
  expect(state.runs).toBe(2);
});

it('gives one who joins during a run what began after they have written', async () => {
  const { join, state, hold } = open();
  const release = hold();
  const early = nextOf(join());
  await underwayDone();
  expect(state.runs).toBe(1);
  state.result = { data: { n: 1 } };
  state.version++;
  const late = nextOf(join());
  await underwayDone();
  release();
  expect(await early).toBe(0);
  expect(await late).toBe(1);
});

it('runs nothing that nobody asks for, and gives a slow reader the newest', async () => {
  const { join, state, change } = open();
  const reader = join();
  await nextOf(reader);
  for (let n = 1; n <= 100; n++) change(n);
  await underwayDone();
  expect(state.runs).toBe(1);
  expect(await nextOf(reader)).toBe(100);
  expect(state.runs).toBe(2);
  expect(await soonOf(reader)).toBe('nothing');
});

it('is held up by nobody who does not ask', async () => {
  const { join, change } = open();
  const [slow, quick] = [join(), join()];
  await Promise.all([nextOf(slow), nextOf(quick)]);
  for (let n = 1; n <= 3; n++) {
    const next = nextOf(quick);
    change(n);
    expect(await next).toBe(n);
  }
  // It is still so, and needs no run.
  expect(await nextOf(slow)).toBe(3);
});

it('gives nobody twice in a row what they have, whatever they skipped', async () => {
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
  await underwayDone();
  expect(state.runs).toBe(4);
  expect(await soonOf(quick)).toBe('nothing');
});

it('delivers also while changes come faster than it runs', async () => {
  const { join, hold, change } = open();
  const reader = join();
  await nextOf(reader);
  for (let n = 1; n <= 3; n++) {
    const release = hold();
    const next = nextOf(reader);
    change(n);
    await underwayDone();
    change(n + 1);
    release();
    expect(await next).toBe(n);
  }
});

it('ends with its last reader, and not before', async () => {
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

it('ends for all when the token is revoked, also for those who have not read everything', async () => {
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

it('withholds everything while the token is in doubt: what is there, and what is being run', async () => {
  const { join, state, announce, change, hold } = open();
  const [reader, slow] = [join(), join()];
  await Promise.all([nextOf(reader), nextOf(slow)]);
  let settle: (isValid: boolean) => void = () => {};
  const doubt = () => {
    state.isValid = () => new Promise((response) => (settle = response));
    announce(alice.id, 'ApiToken');
  };
  const first = nextOf(reader);
  change(1);
  await first;
  doubt();
  expect(await soonOf(slow)).toBe('nothing');
  settle(true);
  // Asked for above.
  await underwayDone();
  const release = hold();
  const second = reader.next();
  change(2);
  await underwayDone();
  doubt();
  release();
  const isSettled = Promise.race([second, underwayDone().then(() => 'not settled')]);
  expect(await isSettled).toBe('not settled');
  settle(false);
  expect(await second).toEqual(done);
});

it('withholds also a result that would be the last', async () => {
  const { join, state, announce, hold } = open();
  const release = hold();
  state.result = { data: { n: null }, errors: [clientError('BAD_USER_INPUT', 'no')] };
  const next = join().next();
  await underwayDone();
  state.isValid = async () => {
    await underwayDone();
    return false;
  };
  announce(alice.id, 'ApiToken');
  release();
  expect(await next).toEqual(done);
});

it('masks what is hidden, tells one reader’s log of it, and runs again until it succeeds', async () => {
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
  ['is hidden', new GraphQLError('broken', { originalError: new Error() })],
  ['says that it may pass', clientError('SERVICE_UNAVAILABLE', 'later', { retryAfter: 30 })],
])('gives nobody a failure that %s for the state of things', async (_, error) => {
  const { join, state } = open();
  state.result = { data: { n: null }, errors: [error] };
  const early = join();
  expect(await nextOf(early)).toBe(null);
  state.result = { data: { n: 1 } };
  expect(await nextOf(join())).toBe(1);
  expect(await nextOf(early)).toBe(1);
});

it('ends with a result that says that the request is wrong, which each reader gets', async () => {
  const { join, state, hold } = open();
  state.result = { data: { n: null }, errors: [clientError('BAD_USER_INPUT', 'no')] };
  const release = hold();
  const [first, slow] = [join(), join()];
  const early = first.next();
  await underwayDone();
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

it('sends no status with an error of one result', async () => {
  const { join, state } = open();
  const extensions = { code: 'UNAUTHENTICATED', http: { status: 401 } };
  state.result = { data: { n: null }, errors: [new GraphQLError('who?', { extensions })] };
  const { value } = await join().next();
  expect(value?.errors?.[0]?.extensions).toEqual({ code: 'UNAUTHENTICATED' });
});

it('gives others the processor between many readers', async () => {
  const { join, change } = open();
  const readers = Array.from({ length: 200 }, () => join());
  await Promise.all(readers.map(nextOf));
  let served = 0;
  const all = readers.map(async (reader) => {
    await nextOf(reader);
    served++;
  });
  change(1);
  const seen = new Set<number>();
  while (served < readers.length) {
    await new Promise((settle) => setImmediate(settle));
    seen.add(served);
  }
  await Promise.all(all);
  expect(Math.min(...[...seen].filter((count) => count > 0))).toBeLessThan(readers.length);
});
