/**
 * One computation for everybody who subscribes to the same: run again after changes of the viewer's data, for those who
 * read it.
 */

import type { ExecutionResult } from 'graphql';
import type { Viewer } from '../auth/viewer.ts';
import { codeForClient } from '../errors.ts';
import type { WatchViewer } from '../schema/subscriptions.ts';
import { forClient, type Report } from './clientErrors.ts';
import type { KeyedQueue } from './keyedQueue.ts';
import { createReaders, type LiveResult, type Reader } from './readers.ts';

export interface LiveQuery {
  /** Adds a reader. @param report is told of what clients may not see. */
  join(report: Report): Reader;
}

export interface LiveQueryOptions {
  readonly viewer: Viewer;
  /** Runs the operation once. */
  execute(): Promise<ExecutionResult>;
  readonly watchViewer: WatchViewer;
  readonly inTurn: KeyedQueue<number>;
  /** The version of the viewer's data, or undefined while what is read of it may not be remembered. */
  versionOf(viewerId: number): number | undefined;
  /** Called when nobody can join any more. */
  onEnd(): void;
}

/**
 * Runs when something may have changed and a reader waits: what nobody asks for is not computed, and a reader who does not
 * ask holds nobody up, and misses what is overtaken. A failure that may pass is run again after a while: the readers would
 * otherwise have it for the state of things until the next change. Ends with the last reader, with the
 * viewer's token, or with a result that says that the request is wrong, as it would be again and again.
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

  async function publish(result: ExecutionResult | undefined): Promise<void> {
    if (!result || isOver) return;
    // Whoever may not know any more gets nothing. Once the token is known to stand it is run again.
    if (!watch.isTrusted) return runs.forget();
    const codes = result.errors?.map(codeForClient) ?? [];
    const hasFailed = codes.includes(undefined) || codes.includes('SERVICE_UNAVAILABLE');
    if (hasFailed) runs.forget();
    watch.noteResult(hasFailed);
    const isLast = codes.includes('BAD_USER_INPUT');
    if (isLast) end();
    await readers.publish({ run: runs.last, isLast, ...forReaders(forClient(result, readers.report)) });
    runIfAwaited();
  }

  return {
    join(report) {
      const isCurrent = runs.isCurrent();
      // Before the first run it is due anyway.
      if (!isCurrent && runs.last > 0) watch.recheckToken();
      return readers.add({ report, firstRun: isCurrent ? runs.last : runs.last + 1 });
    },
  };
}

/** The runs of an operation, each in its viewer's turn. */
function createRuns({ viewer, execute, inTurn, versionOf }: LiveQueryOptions) {
  let isDue = false;
  let isRunning = false;
  let last = 0;
  /** The version of the data when the last run began; undefined if it may not stand for how things are. */
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
    /** Whether the result of that run is, or will be, how things are now. */
    isCurrent: () => version !== undefined && version === versionOf(viewer.id),
    /** Must be called when it is not. */
    forget() {
      version = undefined;
    },
    /** @param isWanted asked when its turn has come. */
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

/** The result with its text. A status is for the whole response, of which this is a part. */
function forReaders(shown: ExecutionResult): { text: string; result: LiveResult } {
  for (const { extensions } of shown.errors ?? []) delete extensions.http;
  const text = JSON.stringify(shown);
  return { text, result: { ...shown, stringify: () => text } };
}
