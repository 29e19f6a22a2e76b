/** Waiting that has an end. */

import { setTimeout as sleep } from 'node:timers/promises';

/** What something comes to, if it does within so many milliseconds; undefined otherwise, and if it fails. */
export async function resultWithin<T>(
  milliseconds: number,
  what: Promise<T> | undefined,
): Promise<T | undefined> {
  const stop = new AbortController();
  try {
    return await Promise.race([
      what?.catch(() => undefined),
      sleep(milliseconds, undefined, { signal: stop.signal, ref: false }).catch(() => undefined),
    ]);
  } finally {
    stop.abort();
  }
}
