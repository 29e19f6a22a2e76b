/** A live query runs an operation again after each change of the viewer's data, once for all who subscribe to it. */

import type { ExecutionResult } from 'graphql';
import type { Viewer } from '../auth/viewer.ts';
import { codeForClient } from '../errors.ts';
import type { WatchViewer } from '../schema/subscriptions.ts';
import type { KeyedQueue } from './keyedQueue.ts';
import { createReaders, type Reader } from './readers.ts';
import { forClient, type Report } from './result.ts';

export interface LiveQuery {
  /** Adds a reader. @param report is told of errors that are hidden from clients. */
  join(report: Report): Reader;
}

export interface LiveQueryOptions {
  readonly viewer: Viewer;
  /** Runs the operation once. */
  execute(): Promise<ExecutionResult>;
  readonly watchViewer: WatchViewer;
  readonly inTurn: KeyedQueue<number>;
  /** The version of the viewer's data, or undefined while nothing that is read of it may be cached. */
  versionOf(viewerId: number): number | undefined;
  /** Called when the live query has ended, and takes no more readers. */
  onEnd(): void;
}

/**
 * The operation runs when data may have changed and a reader waits for a result. A slow reader delays nobody: it misses the
 * results that came in the meantime, and gets the newest. After a failure that may pass the operation runs again a while
 * later, without a change. The live query ends when the last reader leaves, when the viewer's token ends, or after a result
 * which says that the request is wrong, since every further run would say the same.
 */
export function createLiveQuery(options: LiveQueryOptions): LiveQuery {
  const { viewer, onEnd } = options;
  let isOver = false;
  const runs = createRuns(options);
  const readers = createReaders({
    mayServe: () => watch.isTrusted,
    onAsk() {
      runIfAwaited();
      return !isOver && (runs.isDue || runs.isRunning);
    },
    onEmpty: end,
  });
  const watch = options.watchViewer(viewer, {
    changed() {
      runs.setDue();
      runIfAwaited();
    },
    ended: readers.end,
  });

  function end(): void {
    isOver = true;
    watch.stop();
    onEnd();
  }

  function runIfAwaited(): void {
    if (isOver || !runs.isDue || runs.isRunning || !watch.isTrusted || !readers.areWaiting()) return;
    const run = runs.run(() => !isOver);
    run.then(publish).catch((error: unknown) => {
      readers.report(error);
      readers.end();
    });
  }

  function publish(result: ExecutionResult | undefined): void {
    if (!result || isOver) return;
    // The token may have ended, so nobody gets this result. Once it is known to be valid, the operation runs again.
    if (!watch.isTrusted) {
      runs.forget();
      return;
    }
    const codes = result.errors?.map(codeForClient) ?? [];
    const hasFailed = codes.includes(undefined) || codes.includes('SERVICE_UNAVAILABLE');
    if (hasFailed) runs.forget();
    watch.noteResult(hasFailed);
    const isLast = codes.includes('BAD_USER_INPUT');
    if (isLast) end();
    const shown = forClient(result, readers.report);
    const text = JSON.stringify(shown);
    readers.publish({ run: runs.last, isLast, text, result: { ...shown, stringify: () => text } });
    runIfAwaited();
  }

  return {
    join(report) {
      const isCurrent = runs.isCurrent();
      // The first run waits for the check of the token anyway.
      if (!isCurrent && runs.last > 0) watch.recheckToken();
      return readers.add({ report, firstRun: isCurrent ? runs.last : runs.last + 1 });
    },
  };
}

/** Runs an operation, one run of a viewer after the other. */
function createRuns({ viewer, execute, inTurn, versionOf }: LiveQueryOptions) {
  let isDue = false;
  let isRunning = false;
  let last = 0;
  /** The version of the data when the last run began; undefined if its result may be out of date. */
  let version: number | undefined;
  return {
    /** Whether something may have changed since the last run began. */
    get isDue() {
      return isDue;
    },
    setDue() {
      isDue = true;
    },
    get isRunning() {
      return isRunning;
    },
    /** The number of the run that began last; 0 before the first. */
    get last() {
      return last;
    },
    /** Whether the result of the last run shows the data as they are now. It need not have ended. */
    isCurrent: () => version !== undefined && version === versionOf(viewer.id),
    /** Has `isCurrent` be false until the next run: the result cannot be used. */
    forget() {
      version = undefined;
    },
    /** @param isWanted is asked when the run may begin. Returns undefined if it is not wanted any more. */
    async run(isWanted: () => boolean): Promise<ExecutionResult | undefined> {
      isRunning = true;
      try {
        return await inTurn(viewer.id, async () => {
          if (!isWanted()) return undefined;
          isDue = false;
          last++;
          version = versionOf(viewer.id);
          return execute();
        });
      } finally {
        isRunning = false;
      }
    },
  };
}
