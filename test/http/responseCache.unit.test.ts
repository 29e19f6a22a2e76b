/** The rules by which responses are cached, with a feed that does what the test says. */

import { describe, expect, it, vi } from 'vitest';
import { type HttpResponse, jsonResponse } from '../../src/http/response.ts';
import { createResponseCache, type ResponseCache } from '../../src/http/responseCache.ts';
import type { Computed } from '../../src/http/task.ts';
import { stopClock } from '../support/clock.ts';
import { createFakeFeed } from '../support/feed.ts';

const alice = 1;
const bob = 2;
const mebibyte = 1024 * 1024;

const maxAge = 300;

function open(maxBytes = mebibyte, catchUp?: () => Promise<boolean>) {
  const fake = createFakeFeed(catchUp);
  return {
    ...fake,
    responseCache: createResponseCache(fake.feed, { maxBytes, maxAge }),
  };
}

type Opened = ReturnType<typeof open>;

const responseOf = (text: string): HttpResponse => jsonResponse(200, JSON.stringify(text));
function textOf(response: ReturnType<ResponseCache['get']>): unknown {
  if (response instanceof Promise) throw new Error('it is a promise');
  return response && JSON.parse(response.body.toString());
}
const good = (text: string) => async (): Promise<Computed> => ({
  response: responseOf(text),
  isCacheable: true,
});

/** A computation that ends when the test ends it. */
function pending() {
  let settle: (computed: Computed) => void = () => {};
  let fail: (error: Error) => void = () => {};
  const promise = new Promise<Computed>((resolve, reject) => {
    settle = resolve;
    fail = reject;
  });
  return {
    compute: () => promise,
    finish: (text: string) => settle({ response: responseOf(text), isCacheable: true }),
    fail: () => fail(new Error('the database is away')),
  };
}

describe('a response', () => {
  it('is cached only for the viewer and the request that it was computed for', async () => {
    const { responseCache } = open();
    expect(responseCache.get(alice, '/dtt')).toBeUndefined();
    expect(textOf(await responseCache.compute(alice, '/dtt', good('trainers')))).toBe('trainers');
    expect(textOf(responseCache.get(alice, '/dtt'))).toBe('trainers');
    expect(responseCache.get(alice, '/dtt?limit=1')).toBeUndefined();
    expect(responseCache.get(bob, '/dtt')).toBeUndefined();
    // The digits of a viewer's id do not run into the request.
    expect(responseCache.get(11, '/dtt')).toBeUndefined();
  });

  it('is not served once so many viewers have changed data that the version of its viewer was evicted', async () => {
    const { responseCache, announce } = open();
    await responseCache.compute(alice, '/dtt', good('trainers'));
    for (let viewer = 1_000; viewer < 1_000 + 99_999; viewer++) announce(viewer);
    expect(textOf(responseCache.get(alice, '/dtt'))).toBe('trainers');
    announce(alice);
    announce(bob);
    expect(responseCache.get(alice, '/dtt')).toBeUndefined();
    await responseCache.compute(alice, '/dtt', good('new'));
    expect(textOf(responseCache.get(alice, '/dtt'))).toBe('new');
  });

  it('is not cached if it is an error', async () => {
    const { responseCache } = open();
    const failed = async () => ({ response: jsonResponse(404, '"missing"'), isCacheable: false });
    expect(textOf(await responseCache.compute(alice, '/dtt/9', failed))).toBe('missing');
    expect(responseCache.get(alice, '/dtt/9')).toBeUndefined();
    expect(responseCache.counters.overtaken).toBe(0);
  });

  it('whose computation fails is computed anew by the next request', async () => {
    const { responseCache } = open();
    const slow = pending();
    const computing = [
      responseCache.compute(alice, '/dtt', slow.compute),
      responseCache.compute(alice, '/dtt', good('not computed')),
    ];
    slow.fail();
    for (const { status } of await Promise.allSettled(computing)) expect(status).toBe('rejected');
    expect(textOf(await responseCache.compute(alice, '/dtt', good('trainers')))).toBe('trainers');
  });
});

describe('identical requests in flight', () => {
  it.each<[string, boolean, (opened: Opened) => void]>([
    ['that is announced', true, ({ announce }) => announce(alice)],
    ['that this process writes', true, ({ responseCache }) => responseCache.invalidate(alice)],
    ['of any data', false, ({ announceAll }) => announceAll()],
    [
      'that is missed while the feed is down',
      false,
      ({ lose, regain }) => {
        lose();
        regain();
      },
    ],
  ])('share one computation, but none that began before a change: one %s', async (_, isOfAlice, change) => {
    const opened = open();
    const { responseCache } = opened;
    const read = (viewer: number, compute: () => Promise<Computed>) =>
      responseCache.compute(viewer, '/dtt', compute).then(textOf);
    await responseCache.compute(alice, '/cached', good('old'));
    await responseCache.compute(bob, '/cached', good('his'));
    const [before, after] = [pending(), pending()];
    const first = read(alice, before.compute);
    // Nor anything with another viewer or token.
    expect(await read(bob, good('his'))).toBe('his');
    expect(textOf(await responseCache.compute(alice, '/dtt', good('own'), {}))).toBe('own');
    change(opened);
    expect(responseCache.get(alice, '/cached')).toBeUndefined();
    for (const path of ['/cached', '/dtt'])
      expect(textOf(responseCache.get(bob, path))).toBe(isOfAlice ? 'his' : undefined);
    const others = [read(alice, after.compute), read(alice, good('not computed'))];
    // In this order, so that the old response is there when the others could share it.
    before.finish('old');
    expect(await first).toBe('old');
    expect(responseCache.get(alice, '/dtt')).toBeUndefined();
    others.push(read(alice, good('not computed')));
    after.finish('new');
    expect(await Promise.all(others)).toEqual(['new', 'new', 'new']);
    expect(textOf(responseCache.get(alice, '/dtt'))).toBe('new');
    expect(responseCache.counters).toEqual({ hits: isOfAlice ? 3 : 1, misses: 8, shared: 2, overtaken: 1 });
  });
});

describe('once a viewer may have seen a change that is not announced yet', () => {
  /** A feed that is asked whether it has received all changes, and responds when the test does. */
  function openLate() {
    const asked: ((hasCaughtUp: boolean) => void)[] = [];
    const opened = open(mebibyte, () => new Promise((settle) => asked.push(settle)));
    return { ...opened, asked };
  }
  const isPending = async (promise: unknown) =>
    (await Promise.race([promise, new Promise((settle) => setImmediate(settle, 'pending'))])) === 'pending';

  it('a cached response is served when the feed has caught up without a change of theirs', async () => {
    const { responseCache, asked } = openLate();
    await responseCache.compute(alice, '/dtt', good('trainers'));
    const waiting = responseCache.get(alice, '/dtt');
    expect(await isPending(waiting)).toBe(true);
    // A read after the question is not meant by the answer.
    responseCache.noteRead(alice);
    asked[0]?.(true);
    expect(textOf(await waiting)).toBe('trainers');
    const again = responseCache.get(alice, '/dtt');
    expect(await isPending(again)).toBe(true);
    asked[1]?.(true);
    expect(textOf(await again)).toBe('trainers');
    // That holds until this viewer reads something again, also if others do.
    await responseCache.compute(bob, '/dtt', good('his'));
    expect(textOf(responseCache.get(alice, '/dtt'))).toBe('trainers');
    expect(asked).toHaveLength(2);
    responseCache.noteRead(alice);
    expect(responseCache.get(alice, '/dtt')).toBeInstanceOf(Promise);
    expect(asked).toHaveLength(3);
  });

  it('a cached response is not served if the change is announced meanwhile', async () => {
    const { responseCache, asked, announce } = openLate();
    await responseCache.compute(alice, '/dtt', good('old'));
    await responseCache.compute(alice, '/users/me', good('new'));
    const waiting = responseCache.get(alice, '/dtt');
    announce(alice);
    asked[0]?.(true);
    expect(await waiting).toBeUndefined();
  });

  it('nothing is served from the cache if the feed does not catch up, and after one timeout no request waits for it', async () => {
    for (const reply of ['no', 'none'] as const) {
      const { responseCache, asked } = openLate();
      await responseCache.compute(alice, '/dtt', good('old'));
      const waiting = responseCache.get(alice, '/dtt');
      if (reply === 'no') asked[0]?.(false);
      expect(await waiting, reply).toBeUndefined();
      await responseCache.compute(alice, '/dtt', good('new'));
      await new Promise((settle) => setTimeout(settle, 20));
      expect(await responseCache.get(alice, '/dtt'), reply).toBeUndefined();
      expect(asked, reply).toHaveLength(1);
      if (reply === 'no') {
        vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 1_000);
        void responseCache.get(alice, '/dtt');
        expect(asked).toHaveLength(2);
        continue;
      }
      // The feed catches up after all, with what was read before it was asked.
      asked[0]?.(true);
      await new Promise(setImmediate);
      const again = responseCache.get(alice, '/dtt');
      asked[1]?.(true);
      expect(textOf(await again)).toBe('new');
    }
  });

  it('no computation is shared that began before the read', async () => {
    const { responseCache } = openLate();
    const slow = pending();
    const computing = responseCache.compute(alice, '/dtt', slow.compute);
    responseCache.noteRead(alice);
    expect(textOf(await responseCache.compute(alice, '/dtt', good('new')))).toBe('new');
    slow.finish('old');
    await computing;
  });
});

it.each<[string, (opened: Opened) => void, later: string | undefined]>([
  ['is down', ({ lose }) => lose(), undefined],
  ['is not listening, but has not reported that', ({ falter }) => falter(), 'trainers'],
])('while the feed %s nothing is served from the cache, shared or cached', async (_, stop, later) => {
  const opened = open();
  const { responseCache } = opened;
  await responseCache.compute(alice, '/dtt', good('trainers'));
  const [before, during] = [pending(), pending()];
  const computing = [responseCache.compute(alice, '/users/me', before.compute)];
  stop(opened);
  expect(responseCache.get(alice, '/dtt')).toBeUndefined();
  expect(responseCache.versionOf(alice)).toBeUndefined();
  computing.push(responseCache.compute(alice, '/dtt', during.compute));
  expect(textOf(await responseCache.compute(alice, '/dtt', good('own')))).toBe('own');
  for (const each of [before, during]) each.finish('slow');
  await Promise.all(computing);
  opened.falter(true);
  expect(responseCache.get(alice, '/users/me')).toBeUndefined();
  expect(textOf(responseCache.get(alice, '/dtt'))).toBe(later);
  expect(responseCache.counters).toMatchObject({ misses: 4, shared: 0, overtaken: 1 });
});

it('the maximum age applies although no change is announced, and is not extended by use', async () => {
  const { responseCache } = open();
  await responseCache.compute(alice, '/dtt', good('trainers'));
  const clock = stopClock();
  for (let age = 0; age < maxAge - 10; age += 10) {
    clock.advance(10);
    expect(textOf(responseCache.get(alice, '/dtt'))).toBe('trainers');
  }
  // The clock is read once a second.
  clock.advance(12);
  expect(responseCache.get(alice, '/dtt')).toBeUndefined();
  await responseCache.compute(alice, '/dtt', good('new'));
  expect(textOf(responseCache.get(alice, '/dtt'))).toBe('new');
});

describe('memory', () => {
  const size = 10_000;
  const long = (letter: string) => good(letter.repeat(size));

  it('is limited in bytes, and the least recently used response is evicted first', async () => {
    const { responseCache } = open(4.5 * 1.7 * size);
    const viewers = [1, 2, 3, 4, 5];
    for (const viewer of viewers.slice(0, 4)) await responseCache.compute(viewer, '/dtt', long('x'));
    responseCache.get(1, '/dtt');
    await responseCache.compute(5, '/dtt', long('x'));
    expect(viewers.filter((viewer) => responseCache.get(viewer, '/dtt') !== undefined)).toEqual([1, 3, 4, 5]);
  });

  it('keeps a response that is asked for again, however many another viewer has', async () => {
    const { responseCache } = open(10 * 1.7 * size);
    await responseCache.compute(bob, '/dtt', long('x'));
    for (let index = 0; index < 20; index++) {
      await responseCache.compute(alice, `/${index}`, long('x'));
      expect(responseCache.get(bob, '/dtt')).toBeDefined();
    }
    // A response that is replaced counts once.
    await responseCache.compute(alice, '/19', long('y'));
    expect(responseCache.get(alice, '/18')).toBeDefined();
    expect(responseCache.get(alice, '/0')).toBeUndefined();
  });

  it('is not taken by a response that is larger than all of it', async () => {
    const { responseCache } = open(1.7 * size);
    await responseCache.compute(alice, '/small', good('x'));
    const { body } = await responseCache.compute(alice, '/large', long('xx'));
    expect(body.length).toBeGreaterThan(2 * size);
    expect(textOf(responseCache.get(alice, '/small'))).toBe('x');
    expect(responseCache.usage().entries).toBe(1);
  });

  it('of a small response does not include the larger buffer that it was made in', async () => {
    const { responseCache } = open();
    await responseCache.compute(alice, '/dtt', good('trainers'));
    const { body, forms } = (await responseCache.get(alice, '/dtt')) ?? expect.fail('it was not cached');
    expect(body.buffer.byteLength).toBe(body.length);
    // It is to hold its compressed form, which has been counted already.
    expect(forms).toEqual({});
    expect(JSON.parse(body.toString())).toBe('trainers');
    // The text with its compressed forms, the request (two bytes a character), and the overhead of an entry.
    const bytes = 1.5 * '"trainers"'.length + 2 * `${alice} /dtt`.length + 1_000;
    expect(responseCache.usage()).toEqual({ entries: 1, bytes });
  });
});
