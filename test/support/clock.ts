/** A clock that a test sets, for code that lets something expire. */

import { onTestFinished, vi } from 'vitest';

/** Stops the time of day until the test has ended. @returns the time. */
export function stopNow(): number {
  const now = Date.now();
  vi.useFakeTimers({ toFake: ['Date'], now });
  onTestFinished(() => void vi.useRealTimers());
  return now;
}

/** Stops `performance.now` and `setTimeout` until `restore` is called. */
export function stopClock() {
  let now = Math.floor(performance.now());
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now);
  return {
    advance(seconds: number) {
      now += seconds * 1_000;
      vi.advanceTimersByTime(seconds * 1_000);
    },
    restore() {
      clock.mockRestore();
      vi.useRealTimers();
    },
  };
}
