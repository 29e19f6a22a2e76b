/** Waiting: for a while, or for somebody to say so. */

import { setTimeout as sleep } from 'node:timers/promises';

/** Waits, in milliseconds. Gives false at once when the signal aborts. */
export function pause(milliseconds: number, signal: AbortSignal): Promise<boolean> {
  return sleep(milliseconds, true, { signal }).catch(() => false);
}

/** A promise, and the function that settles it. */
export function createSignal() {
  let settle = () => {};
  const promise = new Promise<void>((resolve) => {
    settle = resolve;
  });
  return { promise, settle };
}

/** Waits for something, in milliseconds for no longer than this. It is no matter whether it fails. */
export function waitAtMost(milliseconds: number, awaited: Promise<unknown>): Promise<void> {
  return new Promise((settle) => {
    const timer = setTimeout(settle, milliseconds);
    const end = () => {
      clearTimeout(timer);
      settle();
    };
    awaited.then(end, end);
  });
}
