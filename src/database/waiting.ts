/** Waits for a time, for a signal, or for a result with a timeout; and shares the runs of a function between callers. */

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

export type SharedRuns<Result> = ReturnType<typeof createSharedRuns<Result>>;

/** Runs a function at most once at a time. A caller never joins a run that began before the call, which may miss what the caller knows. */
export function createSharedRuns<Result>(run: () => Promise<Result>) {
  let current: Promise<Result> | undefined;
  let next: Promise<Result> | undefined;

  function start(): Promise<Result> {
    next = undefined;
    const begun = run();
    const clear = () => {
      if (current === begun) current = undefined;
    };
    current = begun;
    begun.then(clear, clear);
    return begun;
  }

  return {
    get current(): Promise<Result> | undefined {
      return current;
    },
    /** A run that begins after the call: at once, or when the current run has ended. All who call in the meantime share it. */
    begin(): Promise<Result> {
      // There is a next run also for the moment between the end of the current one and its own beginning.
      if (next) return next;
      if (!current) return start();
      next = current.then(start, start);
      return next;
    },
    /** Settles when no run is left. */
    async settled(): Promise<void> {
      while (current ?? next) await Promise.allSettled([current, next]);
    },
  };
}
