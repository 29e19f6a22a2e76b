import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { createVisibility, type Snapshot } from '../../../src/database/feed/logical.ts';

const none = new Set<number>();

/** Snapshots that show all transactions before the one that is given by then. */
function openSnapshots(first: number) {
  const source = { next: first, read: 0, lost: new AbortController() };
  const readSnapshot = async (): Promise<Snapshot> => {
    source.read++;
    return { xmin: source.next, xmax: source.next, underway: none };
  };
  return { source, seen: createVisibility(readSnapshot, source.lost) };
}

it('one snapshot serves all transactions that come together, and another one those that come meanwhile', async () => {
  const { source, seen } = openSnapshots(2_000);
  await Promise.all(Array.from({ length: 500 }, (_, index) => seen(1_000 + index)));
  expect(source.read).toBe(1);
  await Promise.all(Array.from({ length: 500 }, (_, index) => seen(1_500 + index)));
  expect(source.read).toBe(2);
});

it('a transaction that no snapshot shows yet is waited for, with fewer and fewer snapshots', async () => {
  const { source, seen } = openSnapshots(10);
  const order: string[] = [];
  const waiting = Promise.all([
    seen(10).then(() => order.push('the later one')),
    seen(9).then(() => order.push('the earlier one')),
  ]);
  await sleep(300);
  expect(order).toEqual(['the earlier one']);
  // After 1, 2, 4, … 50 ms.
  expect(source.read).toBeLessThanOrEqual(13);
  source.next = 11;
  await waiting;
  expect(order).toEqual(['the earlier one', 'the later one']);
});

it('nobody is told any more once the connection is lost, and no snapshot is taken', async () => {
  const { source, seen } = openSnapshots(10);
  let isTold = false;
  void seen(10).then(() => {
    isTold = true;
  });
  await sleep(20);
  source.lost.abort();
  const { read } = source;
  source.next = 11;
  await sleep(100);
  expect([isTold, source.read]).toEqual([false, read]);
});

it('a failing snapshot gives the connection up', async () => {
  const lost = new AbortController();
  const seen = createVisibility(() => Promise.reject(new Error('gone')), lost);
  void seen(10);
  await expect.poll(() => lost.signal.aborted).toBe(true);
});
