/**
 * Where requests wait: everybody has a line of their own, and the lines are served in turn, so that whoever sends a lot
 * waits behind themselves (the idea of fair queueing, RFC 8290).
 */

export interface Waiting {
  /** Who waits: those with equal keys share a line. */
  readonly key: number | string;
  /** How many requests it counts as. */
  readonly size: number;
  /** Since when it waits, in milliseconds. */
  readonly since: number;
}

export interface WaitingLine<Entry extends Waiting> {
  /** How many requests wait. */
  readonly length: number;
  add(entry: Entry): void;
  /** Takes out the request whose turn it is: the oldest of who has waited longest, or the newest of who came last. */
  take(isNewestFirst: boolean): Entry | undefined;
  /** Takes out the oldest request of who has most of them. */
  drop(): Entry | undefined;
  /** Takes out all requests that have waited since before. */
  dropOlder(before: number): Entry[];
}

interface Line<Entry> {
  readonly key: Entry extends Waiting ? Entry['key'] : never;
  readonly entries: Entry[];
  size: number;
}

export function createWaitingLine<Entry extends Waiting>(): WaitingLine<Entry> {
  const lines = new Map<number | string, Line<Entry>>();
  /** In the order in which they are served, from the first to the last; or, the newest first, from the last. */
  let turns: Line<Entry>[] = [];
  let length = 0;
  return {} as WaitingLine<Entry>;
}
