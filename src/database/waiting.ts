/** Waits for a time, for a signal, or for a result with a timeout. */

import { setTimeout as sleep } from 'node:timers/promises';
import { errorText } from '../errors.ts';

/** Waits this many milliseconds. Returns false at once if the signal is aborted. */
export function pause(milliseconds: number, signal: AbortSignal): Promise<boolean> {
  return sleep(milliseconds, true, { signal }).catch(() => false);
}

/** The reason why a signal was aborted, if there is one. */
export function abortReason({ reason }: AbortSignal): string | undefined {
  return reason instanceof Error && reason.name !== 'AbortError' ? errorText(reason) : undefined;
}

/** A promise, and the function that settles it. */
export function createSignal() {
  let settle = () => {};
  const promise = new Promise<void>((resolve) => {
    settle = resolve;
  });
  return { promise, settle };
}

/** The result of a promise; undefined after a timeout, and if the promise rejects. */
export async function resultWithin<Result>(
  milliseconds: number,
  awaited: Promise<Result> | undefined,
): Promise<Result | undefined> {
  const stop = new AbortController();
  try {
    return await Promise.race([
      awaited?.catch(() => undefined),
      sleep(milliseconds, undefined, { signal: stop.signal, ref: false }).catch(() => undefined),
    ]);
  } finally {
    stop.abort();
  }
}
