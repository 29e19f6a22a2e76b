import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { createKeyedQueue } from '../../src/graphql/keyedQueue.ts';

it('the queue runs work of the same key one after the other, and work of other keys meanwhile', async () => {
  const inTurn = createKeyedQueue<string>(async () => {});
  const events: string[] = [];
  const work = (name: string) => async () => {
    events.push(`${name} begins`);
    await sleep(1);
    events.push(`${name} ends`);
    return name;
  };
  const all = [inTurn('a', work('a1')), inTurn('a', work('a2')), inTurn('b', work('b'))];
  expect(await Promise.all(all)).toEqual(['a1', 'a2', 'b']);
  expect(events.filter((line) => line.startsWith('a'))).toEqual([
    'a1 begins',
    'a1 ends',
    'a2 begins',
    'a2 ends',
  ]);
  expect(events.indexOf('b begins')).toBeLessThan(events.indexOf('a2 begins'));
});

it('the queue pauses after work of a key, even if it failed, and is given its duration to choose the pause', async () => {
  const durations: number[] = [];
  let resume = () => {};
  const inTurn = createKeyedQueue<string>((duration) => {
    durations.push(duration);
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
  expect(durations[0]).toBeGreaterThan(1);
  expect(durations[0]).toBeLessThan(performance.now());
});
