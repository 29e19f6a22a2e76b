/** Waiting: for a while, or for somebody to say so. */

import { setTimeout as sleep } from 'node:timers/promises';
import { errorText } from '../errors.ts';

/** Waits, in milliseconds. Gives false at once when the signal aborts. */
export function pause(milliseconds: number, signal: AbortSignal): Promise<boolean> {
  return sleep(milliseconds, true, { signal }).catch(() => false);
}

/** Why a signal was aborted, if whoever did it has said so. */
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

/** What something comes to, if it does within so many milliseconds; undefined otherwise, and if it fails. */
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
