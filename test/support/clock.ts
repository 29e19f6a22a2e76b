/** A clock that a test sets, for code that lets something expire. */

import { vi } from 'vitest';

/** Stops the time of day. @returns the time. */
export function stopNow(): number {
  const now = Date.now();
  vi.useFakeTimers({ toFake: ['Date'], now });
  return now;
}

/** Stops `performance.now` and `setTimeout`. */
export function stopClock() {
  let now = Math.floor(performance.now());
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  return {
    advance(seconds: number) {
      now += seconds * 1_000;
      vi.advanceTimersByTime(seconds * 1_000);
    },
  };
}
