/** The readers of a live query. Each gets the newest result when it asks for one, and never the same twice in a row. */

import type { FormattedExecutionResult } from 'graphql';
import type { Report } from './result.ts';

/** A result as a client may see it. All readers share the object, so nobody may change it. */
export interface LiveResult extends FormattedExecutionResult {
  /** Its JSON text, which is made once for all readers. */
  stringify(): string;
}

export type ReaderStep = IteratorResult<LiveResult, undefined>;

export interface Reader {
  /** Settles with the newest result that the reader has not had, once the viewer's token is known to be valid. */
  next(): Promise<ReaderStep>;
  leave(): void;
}

export interface Published {
  /** The number of the run that made it. */
  readonly run: number;
  readonly text: string;
  readonly result: LiveResult;
  /** Whether no result will follow it. */
  readonly isLast: boolean;
}

export interface NewReader {
  /** Is told of errors that are hidden from clients. */
  readonly report: Report;
  /** The first run whose result the reader may have. An earlier one may have begun before the reader's own last write. */
  readonly firstRun: number;
}

interface ReaderState extends NewReader {
  /** The text of the result that the reader had last. */
  seen?: string;
  /** The calls of `next` that have not settled. */
  readonly waiting: ((step: ReaderStep) => void)[];
}

export interface ReadersOptions {
  /** Whether the viewer's token is known to be valid, so that results may be given. */
  mayServe(): boolean;
  /** Called when a reader asks for a result. Returns whether a newer one is being made. */
  onAsk(): boolean;
  /** Called when the last reader has left. */
  onEmpty(): void;
}

export const done: ReaderStep = { done: true, value: undefined };

export function createReaders({ mayServe, onAsk, onEmpty }: ReadersOptions) {
  const readers = new Set<ReaderState>();
  let latest: Published | undefined;

  function leave(reader: ReaderState): void {
    if (!readers.delete(reader)) return;
    for (const settle of reader.waiting.splice(0)) settle(done);
    if (readers.size === 0) onEmpty();
  }

  /** Gives a waiting reader the newest result, if it may have it and has not had it. */
  function serve(reader: ReaderState): void {
    if (!latest || reader.waiting.length === 0 || !(latest.isLast || mayServe())) return;
    const isNewEnough = latest.isLast || latest.run >= reader.firstRun;
    if (isNewEnough && latest.text !== reader.seen) {
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

    /** Makes this the newest result, and gives it to all waiting readers. */
    publish(published: Published): void {
      latest = published;
      for (const reader of readers) serve(reader);
    },

    /** Reports an error once, as one of the first reader's request. */
    report(error: unknown): void {
      const [first] = readers;
      first?.report(error);
    },

    end(): void {
      for (const reader of readers) leave(reader);
    },
  };
}
