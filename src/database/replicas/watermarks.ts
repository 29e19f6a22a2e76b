/**
 * Watermarks: the position of the primary's log after some moment. A standby that has replayed the log up to a watermark
 * shows everything that was committed before that moment. The position is read a few milliseconds after the moment, in
 * advance of any read that needs it, and one statement reads it for all watermarks that wait.
 */

import type { Position } from '../position/lsn.ts';
import type { PrimaryPositionReader } from '../position/primary.ts';

/** A moment. Its position is read after the moment, and is undefined until then. */
export interface Watermark {
  position: Position | undefined;
  /** The statement that reads the position, while it is in flight. */
  request: Promise<void> | undefined;
}

export interface Watermarks {
  /** A watermark of this moment. */
  add(): Watermark;
  /** @throws when the position of the primary cannot be read. */
  positionOf(mark: Watermark): Promise<Position>;
  close(): void;
}

/** How long, in milliseconds, watermarks are collected before one statement reads their position. */
const batchDelay = 5;

export function createWatermarks(readPosition: PrimaryPositionReader): Watermarks {
  let waiting = new Set<Watermark>();
  let timer: NodeJS.Timeout | undefined;

  function readNow(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    const watermarks = waiting;
    waiting = new Set();
    const request = readPosition().then(
      ({ position }) => {
        for (const mark of watermarks) Object.assign(mark, { position, request: undefined });
      },
      (error: unknown) => {
        for (const mark of watermarks) mark.request = undefined;
        throw error;
      },
    );
    for (const mark of watermarks) mark.request = request;
    return request;
  }

  return {
    add() {
      const mark = { position: undefined, request: undefined };
      waiting.add(mark);
      timer ??= setTimeout(() => readNow().catch(() => {}), batchDelay).unref();
      return mark;
    },
    async positionOf(mark) {
      if (mark.position !== undefined) return mark.position;
      // After a failed statement, the next one is for this watermark as well.
      if (!mark.request) waiting.add(mark);
      await (mark.request ?? readNow());
      if (mark.position === undefined) throw new Error('no position was taken');
      return mark.position;
    },
    close: () => clearTimeout(timer),
  };
}
