import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, vi } from 'vitest';
import { createKeyedQueue } from '../../src/graphql/keyedQueue.ts';

it('does work of the same key one after the other, and that of others meanwhile', async () => {
  const inTurn = createKeyedQueue<string>(async () => {});
  const said: string[] = [];
  const work = (name: string) => async () => {
    said.push(`${name} begins`);
    await sleep(1);
    said.push(`${name} ends`);
    return name;
  };
  const all = [inTurn('a', work('a1')), inTurn('a', work('a2')), inTurn('b', work('b'))];
  expect(await Promise.all(all)).toEqual(['a1', 'a2', 'b']);
  expect(said.filter((line) => line.startsWith('a'))).toEqual([
    'a1 begins',
    'a1 ends',
    'a2 begins',
    'a2 ends',
  ]);
  expect(said.indexOf('b begins')).toBeLessThan(said.indexOf('a2 begins'));
});

it('has work wait for what runs, although what ran before that is done', async () => {
  const inTurn = createKeyedQueue<string>(async () => {});
  let end = () => {};
  const first = inTurn('a', async () => {});
  const second = inTurn('a', () => new Promise<void>((settle) => (end = settle)));
  await first;
  await new Promise(setImmediate);
  let hasBegun = false;
  const third = inTurn('a', async () => {
    hasBegun = true;
  });
  await new Promise(setImmediate);
  expect(hasBegun).toBe(false);
  end();
  await Promise.all([second, third]);
});

it('pauses between two as the first of them asks for, whether it succeeded or not', async () => {
  const tooks: number[] = [];
  let resume = () => {};
  const inTurn = createKeyedQueue<string>((took) => {
    tooks.push(took);
    return new Promise<void>((settle) => {
      resume = settle;
    });
  });
  await expect(inTurn('a', () => sleep(5).then(() => Promise.reject(new Error('no'))))).rejects.toThrow('no');
  let hasBegun = false;
  const second = inTurn('a', async () => {
    hasBegun = true;
  });
  await sleep(5);
  expect(hasBegun).toBe(false);
  resume();
  await second;
  expect(hasBegun).toBe(true);
  expect(tooks[0]).toBeGreaterThan(1);
  expect(tooks[0]).toBeLessThan(performance.now());
});

it('remembers no key whose work is done', async () => {
  const inTurn = createKeyedQueue<string>(async () => {});
  const set = vi.spyOn(Map.prototype, 'set');
  const done = inTurn('a', async () => {});
  const [keys] = set.mock.contexts;
  set.mockRestore();
  expect(keys).toHaveProperty('size', 1);
  await done;
  expect(keys).toHaveProperty('size', 0);
});

it('waits for work that does not end for a while, and no longer', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const inTurn = createKeyedQueue<string>(async () => {});
    inTurn('a', () => new Promise(() => {}));
    let hasBegun = false;
    const second = inTurn('a', async () => {
      hasBegun = true;
    });
    await vi.advanceTimersByTimeAsync(19_999);
    expect(hasBegun).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    await second;
    expect(hasBegun).toBe(true);
  } finally {
    vi.useRealTimers();
  }
});
