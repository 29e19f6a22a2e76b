/** A clock that a test sets, for what is forgotten after a while. */

import { vi } from 'vitest';

/** Stops `performance.now` and the timers, until `restore`. */
export function stopClock() {
  let now = performance.now();
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
