/** The readers of a live query: each gets the newest result when they ask, and none twice in a row. */

import { setImmediate } from 'node:timers/promises';
import type { ExecutionResult } from 'graphql';
import type { Report } from './clientErrors.ts';

/** A result as a client may see it: one object for all readers, into which nobody may write. */
export interface LiveResult extends ExecutionResult {
  /** Its JSON text, which is made once for all readers. */
  stringify(): string;
}

export type ReaderStep = IteratorResult<LiveResult, undefined>;

export interface Reader {
  /** The newest result, once there is one that the reader has not had and the viewer's token is known to be valid. */
  next(): Promise<ReaderStep>;
  leave(): void;
}

export interface Published {
  /** The run that gave it. */
  readonly run: number;
  readonly text: string;
  readonly result: LiveResult;
  /** Whether none comes after it. */
  readonly isLast: boolean;
}

export interface NewReader {
  /** Told of what clients may not see. */
  readonly report: Report;
  /** The first run whose result the reader may have: one that began earlier may not know what they have written. */
  readonly firstRun: number;
}

interface ReaderState extends NewReader {
  /** What the reader had last. */
  seen?: string;
  /** Their requests for a result that wait. */
  readonly waiting: ((step: ReaderStep) => void)[];
}

export interface ReadersOptions {
  /** Whether results may be given at all. */
  mayServe(): boolean;
  /** Called when a reader asks. Says whether something newer is on its way. */
  onAsk(): boolean;
  /** Called when the last has left. */
  onEmpty(): void;
}

/** How many readers are served in one go: the sending to many must not keep everybody else from the processor. */
const slice = 50;

export const done: ReaderStep = { done: true, value: undefined };

export function createReaders({ mayServe, onAsk, onEmpty }: ReadersOptions) {
  const readers = new Set<ReaderState>();
  let latest: Published | undefined;

  function leave(reader: ReaderState): void {
    if (!readers.delete(reader)) return;
    for (const settle of reader.waiting.splice(0)) settle(done);
    if (readers.size === 0) onEmpty();
  }

  /** Gives a reader who waits what there is for them. */
  function serve(reader: ReaderState): void {
    if (!latest || reader.waiting.length === 0 || !(latest.isLast || mayServe())) return;
    const isForThem = latest.isLast || latest.run >= reader.firstRun;
    if (isForThem && latest.text !== reader.seen) {
      reader.seen = latest.text;
      reader.waiting.shift()?.({ done: false, value: latest.result });
    } else if (latest.isLast) leave(reader);
  }

  return {
    add(given: NewReader): Reader {
      const reader: ReaderState = { ...given, waiting: [] };
      readers.add(reader);
      return {
        next: () =>
          new Promise((settle) => {
            if (!readers.has(reader)) return settle(done);
            reader.waiting.push(settle);
            if (!onAsk()) serve(reader);
          }),
        leave: () => leave(reader),
      };
    },

    areWaiting: () => [...readers].some(({ waiting }) => waiting.length > 0),

    /** Gives all who wait for it what is now the newest result. */
    async publish(published: Published): Promise<void> {
      latest = published;
      let served = 0;
      for (const reader of readers) {
        serve(reader);
        if (++served % slice === 0) await setImmediate();
      }
    },

    /** To the log of one reader's request, whoever else has the same. */
    report(error: unknown): void {
      const [first] = readers;
      first?.report(error);
    },

    end(): void {
      for (const reader of readers) leave(reader);
    },
  };
}
