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
  /** Takes out the request whose turn it is: the oldest of the first in turn, or the newest of the last. */
  take(isNewestFirst: boolean): Entry | undefined;
  /** Takes out the oldest request of whoever has most that wait. */
  drop(): Entry | undefined;
  /** Takes out all requests that wait since before then, but for the newest of so many whose turn is next, newest first. */
  dropSince(then: number, spared: number): Entry[];
}

interface Line<Entry> {
  /** The oldest first. */
  readonly entries: Entry[];
  size: number;
}

export function createWaitingLine<Entry extends Waiting>(): WaitingLine<Entry> {
  const lines = new Map<Entry['key'], Line<Entry>>();
  /** Who comes next is the first, or else the last: between the two stand those who had their turn, or came later. */
  let turns: Line<Entry>[] = [];
  let length = 0;

  /** Takes an entry out of its line, which stands in no turn afterwards if it is empty. */
  function remove(line: Line<Entry>, entry: Entry | undefined): Entry | undefined {
    if (!entry) return undefined;
    line.size -= entry.size;
    length -= entry.size;
    if (line.entries.length === 0) lines.delete(entry.key);
    return entry;
  }

  return {
    get length() {
      return length;
    },
    add(entry) {
      let line = lines.get(entry.key);
      if (!line) {
        line = { entries: [], size: 0 };
        lines.set(entry.key, line);
        turns.push(line);
      }
      line.entries.push(entry);
      line.size += entry.size;
      length += entry.size;
    },

    take(isNewestFirst) {
      const line = isNewestFirst ? turns.pop() : turns.shift();
      if (!line) return undefined;
      const entry = remove(line, isNewestFirst ? line.entries.pop() : line.entries.shift());
      // Behind all others, seen from where the next one is taken.
      if (line.entries.length > 0) turns[isNewestFirst ? 'unshift' : 'push'](line);
      return entry;
    },

    drop() {
      const longest = longestOf(turns);
      const entry = longest && remove(longest, longest.entries.shift());
      if (longest?.entries.length === 0) turns.splice(turns.indexOf(longest), 1);
      return entry;
    },

    dropSince(then, spared) {
      const dropped: Entry[] = [];
      for (const [place, line] of turns.entries()) {
        while (mayDrop(line, then, turns.length - place <= spared)) {
          const oldest = remove(line, line.entries.shift());
          if (oldest) dropped.push(oldest);
        }
      }
      if (dropped.length > 0) turns = turns.filter(({ entries }) => entries.length > 0);
      return dropped;
    },
  };
}

function mayDrop({ entries }: Line<Waiting>, then: number, isNext: boolean): boolean {
  const [oldest] = entries;
  return oldest !== undefined && oldest.since < then && !(isNext && entries.length === 1);
}

/** The first of the longest. */
function longestOf<Entry>(lines: readonly Line<Entry>[]): Line<Entry> | undefined {
  let longest = lines[0];
  for (const line of lines) if (longest && line.size > longest.size) longest = line;
  return longest;
}
