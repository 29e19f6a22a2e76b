/**
 * One computation for everybody who subscribes to the same: run again after changes of the viewer's data, and handed to
 * each reader when they ask.
 */

import { setImmediate } from 'node:timers/promises';
import type { ExecutionResult } from 'graphql';
import type { Viewer } from '../auth/viewer.ts';
import { codeForClient } from '../errors.ts';
import type { Follow } from '../schema/subscriptions.ts';
import { forClient, type Report } from './clientErrors.ts';
import type { Turns } from './turns.ts';

/** A result as a client may see it: one object for all readers, into which nobody may write. */
export interface LiveResult extends ExecutionResult {
  /** Its JSON text, which is made once for all readers. */
  stringify(): string;
}

export type Step = IteratorResult<LiveResult, undefined>;

export interface LiveQuery {
  /** Adds a reader. @param report is told of what clients may not see. */
  join(report: Report): Reader;
}

export interface Reader {
  /** The newest result, once there is one that the reader has not had and the viewer's token is known to be valid. */
  next(): Promise<Step>;
  leave(): void;
}

export interface LiveQueryOptions {
  readonly viewer: Viewer;
  /** Runs the operation once. */
  execute(): Promise<ExecutionResult>;
  readonly follow: Follow;
  readonly inTurn: Turns<number>;
  /** The version of the viewer's data, or undefined while changes are not heard of. */
  versionOf(viewerId: number): number | undefined;
  /** Called when nobody can join any more. */
  onEnd(): void;
}

interface ReaderState {
  readonly report: Report;
  /** The first run whose result the reader may have: one that began earlier may not know what they have written. */
  readonly firstRun: number;
  /** What the reader had last. */
  seen?: string;
  /** Its requests for a result that wait. */
  readonly waiting: ((step: Step) => void)[];
}

interface Published {
  readonly run: number;
  readonly text: string;
  readonly result: LiveResult;
}

/** How many readers are served in one go: the sending to many must not keep everybody else from the processor. */
const slice = 50;

export const done: Step = { done: true, value: undefined };

/**
 * Runs when something may have changed and a reader waits: what nobody asks for is not computed, and a reader who does not
 * ask holds nobody up, and misses what is overtaken. A failure that is hidden from clients is run again after a while: the
 * readers would otherwise have it for the state of things until the next change. Ends with the last reader, with the
 * viewer's token, or with a result that says that the request is wrong, as it would be again and again.
 */
export function createLiveQuery(options: LiveQueryOptions): LiveQuery {
  const { viewer, execute, inTurn, versionOf, onEnd } = options;
  const readers = new Set<ReaderState>();
  let latest: Published | undefined;
  /** Which run began last, and at which version of the data; undefined if those who join must not have its result. */
  let lastRun = 0;
  let version: number | undefined;
  /** Whether something may have changed since then. */
  let isDue = false;
  let isRunning = false;
  /** Whether `latest` is the last result that there is. */
  let isOver = false;

  const following = options.follow(viewer, {
    changed() {
      isDue = true;
      runIfAwaited();
    },
    ended: end,
  });

  function end(): void {
    following.stop();
    onEnd();
    for (const reader of readers) leave(reader);
  }

  function leave(reader: ReaderState): void {
    if (!readers.delete(reader)) return;
    for (const settle of reader.waiting.splice(0)) settle(done);
    if (readers.size === 0) end();
  }

  /** Gives a reader who waits what there is for them. */
  function serve(reader: ReaderState): void {
    if (reader.waiting.length === 0 || !(isOver || following.isTrusted)) return;
    const newest = latest && (isOver || latest.run >= reader.firstRun) ? latest : undefined;
    if (newest && newest.text !== reader.seen) {
      reader.seen = newest.text;
      reader.waiting.shift()?.({ done: false, value: newest.result });
    } else if (isOver) leave(reader);
  }

  function runIfAwaited(): void {
    if (isRunning || isOver || !isDue || !following.isTrusted) return;
    if (![...readers].some(({ waiting }) => waiting.length > 0)) return;
    isRunning = true;
    inTurn(viewer.id, run)
      .finally(() => {
        isRunning = false;
      })
      .then(publish)
      .catch((error: unknown) => {
        report(error);
        end();
      });
  }

  async function run(): Promise<ExecutionResult | undefined> {
    if (readers.size === 0) return undefined;
    isDue = false;
    lastRun++;
    version = versionOf(viewer.id);
    return execute();
  }

  async function publish(result: ExecutionResult | undefined): Promise<void> {
    if (!result) return;
    // Whoever may not know any more gets nothing. Once the token is known to stand it is run again.
    if (!following.isTrusted) {
      version = undefined;
      return;
    }
    const codes = result.errors?.map(codeForClient) ?? [];
    const hasFailed = codes.includes(undefined);
    if (hasFailed) version = undefined;
    following.resolved(hasFailed);
    latest = { run: lastRun, ...forReaders(forClient(result, report)) };
    if (codes.includes('BAD_USER_INPUT')) {
      isOver = true;
      following.stop();
      onEnd();
    }
    await serveAll();
    runIfAwaited();
  }

  async function serveAll(): Promise<void> {
    let served = 0;
    for (const reader of readers) {
      serve(reader);
      if (++served % slice === 0) await setImmediate();
    }
  }

  /** To the log of the first reader's request, and of no other. */
  function report(error: unknown): void {
    const [first] = readers;
    first?.report(error);
  }

  return {
    join(reportTo) {
      const isCurrent = version !== undefined && version === versionOf(viewer.id);
      const firstRun = isCurrent ? lastRun : lastRun + 1;
      const reader: ReaderState = { report: reportTo, firstRun, waiting: [] };
      readers.add(reader);
      if (!isCurrent && lastRun > 0) following.distrust();
      return {
        next: () =>
          new Promise((settle) => {
            if (!readers.has(reader)) return settle(done);
            reader.waiting.push(settle);
            if (isOver || (!isDue && !isRunning)) serve(reader);
            else runIfAwaited();
          }),
        leave: () => leave(reader),
      };
    },
  };
}

/** The result with its text. A status is for the whole response, of which this is a part. */
function forReaders(shown: ExecutionResult): { text: string; result: LiveResult } {
  for (const { extensions } of shown.errors ?? []) delete extensions.http;
  const text = JSON.stringify(shown);
  return { text, result: { ...shown, stringify: () => text } };
}
