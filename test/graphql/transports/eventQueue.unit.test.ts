/** The events that wait for the reader of an event stream, with fake timers. */

import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createEventQueue } from '../../../src/graphql/transports/eventQueue.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const mebibyte = 'x'.repeat(1024 * 1024);

function createQueue() {
  const onLeft = vi.fn(() => queue.end());
  const queue = createEventQueue(12_000, onLeft);
  return { queue, onLeft, reader: queue.body.getReader() };
}

it('the queue is full while more than 4 MiB wait in it, and has room again when they have been read', async () => {
  const { queue, reader } = createQueue();
  for (let count = 0; count < 3; count++) void queue.push(mebibyte);
  expect(queue.isFull()).toBe(false);
  void queue.push(mebibyte);
  expect(queue.isFull()).toBe(true);
  for (let count = 0; count < 2; count++) await reader.read();
  expect(queue.isFull()).toBe(false);
});

it('the queue ends when events are added although it is full, and more than 16 MiB wait', async () => {
  const { queue, onLeft } = createQueue();
  for (let count = 0; count < 15; count++) void queue.push(mebibyte);
  expect(onLeft).not.toHaveBeenCalled();
  const last = queue.push(mebibyte);
  expect(onLeft).toHaveBeenCalledOnce();
  await last;
});

it('the queue ends when an event waits for half a minute, even if others are read meanwhile', async () => {
  const { queue, onLeft, reader } = createQueue();
  for (let count = 0; count < 100; count++) void queue.push('event');
  await vi.advanceTimersByTimeAsync(60_000);
  // It was not open yet, which has a time limit of its own.
  expect(onLeft).not.toHaveBeenCalled();
  for (let seconds = 0; seconds < 40; seconds += 10) {
    await reader.read();
    await vi.advanceTimersByTimeAsync(10_000);
  }
  expect(onLeft).toHaveBeenCalled();
});

it('the queue leaves no timer running when it ends before it is read', async () => {
  const { queue, reader } = createQueue();
  queue.end();
  expect(await reader.read()).toMatchObject({ done: true });
  expect(vi.getTimerCount()).toBe(0);
});

it('the queue stays open for a reader that reads each event in time', async () => {
  const { queue, onLeft, reader } = createQueue();
  await reader.read();
  for (let count = 0; count < 5; count++) {
    void queue.push('event');
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await reader.read()).toMatchObject({ done: false });
  }
  expect(onLeft).not.toHaveBeenCalled();
});
