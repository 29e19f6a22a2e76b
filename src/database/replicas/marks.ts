/**
 * Positions of the primary after certain moments. Each is taken soon, for all moments until then by one statement: a
 * standby is always a little behind, and has what is taken at once by the time that somebody asks.
 */

import type { Position } from '../position/lsn.ts';
import type { PrimaryPositionReader } from '../position/primary.ts';

/** A moment, with a position that was taken after it once there is one. */
export interface Mark {
  position: Position | undefined;
  /** The statement that takes it, while it is under way. */
  taking: Promise<void> | undefined;
}

export interface Marks {
  /** A mark of now. */
  add(): Mark;
  /** @throws when the primary does not say where it is. */
  positionOf(mark: Mark): Promise<Position>;
  close(): void;
}

/** How long, in milliseconds, positions are gathered that nobody waits for. */
const soon = 5;

export function createMarks(take: PrimaryPositionReader): Marks {
  let waiting = new Set<Mark>();
  let timer: NodeJS.Timeout | undefined;

  function takeNow(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    const marks = waiting;
    waiting = new Set();
    const taking = take().then(
      ({ position }) => {
        for (const mark of marks) Object.assign(mark, { position, taking: undefined });
      },
      (error: unknown) => {
        for (const mark of marks) mark.taking = undefined;
        throw error;
      },
    );
    for (const mark of marks) mark.taking = taking;
    return taking;
  }

  return {
    add() {
      const mark = { position: undefined, taking: undefined };
      waiting.add(mark);
      timer ??= setTimeout(() => takeNow().catch(() => {}), soon).unref();
      return mark;
    },
    async positionOf(mark) {
      if (mark.position !== undefined) return mark.position;
      // What is asked after one that failed covers it as well.
      if (!mark.taking) waiting.add(mark);
      await (mark.taking ?? takeNow());
      if (mark.position === undefined) throw new Error('no position was taken');
      return mark.position;
    },
    close: () => clearTimeout(timer),
  };
}
