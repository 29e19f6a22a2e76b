/**
 * Where requests wait: everybody has a line of their own, and the lines are served in turn, so that whoever sends a lot
 * waits behind themselves (the idea of fair queueing, RFC 8290).
 */

export interface Waiting {
  /** Who waits: those with equal keys share a line. */
  readonly key: number | string;
  /** How many requests it counts as. */
  readonly size: number;
}

export interface WaitingLine<Entry extends Waiting> {
  /** How many requests wait. */
  readonly length: number;
  add(entry: Entry): void;
  /** Takes out the oldest request of whose turn it is. */
  take(): Entry | undefined;
  /** Whether nobody would have more that wait than whose request this is, if it waited as well. */
  wouldHaveMost(entry: Waiting): boolean;
  /** Takes out the newest request of whoever has most that wait. */
  drop(): Entry | undefined;
}

interface Line<Entry> {
  readonly key: Waiting['key'];
  /** The oldest first. */
  readonly entries: Entry[];
  size: number;
}

export function createWaitingLine<Entry extends Waiting>(): WaitingLine<Entry> {
  /** Whose turn is next comes first. */
  const lines = new Map<Entry['key'], Line<Entry>>();
  let length = 0;

  function remove(line: Line<Entry>, entry: Entry | undefined): Entry | undefined {
    if (!entry) return undefined;
    line.size -= entry.size;
    length -= entry.size;
    if (line.entries.length === 0) lines.delete(line.key);
    return entry;
  }

  return {
    get length() {
      return length;
    },

    add(entry) {
      let line = lines.get(entry.key);
      if (!line) {
        line = { key: entry.key, entries: [], size: 0 };
        lines.set(entry.key, line);
      }
      line.entries.push(entry);
      line.size += entry.size;
      length += entry.size;
    },

    take() {
      const [line] = lines.values();
      if (!line) return undefined;
      // Behind all others, if there is more.
      lines.delete(line.key);
      if (line.entries.length > 1) lines.set(line.key, line);
      return remove(line, line.entries.shift());
    },

    wouldHaveMost({ key, size }) {
      const own = size + (lines.get(key)?.size ?? 0);
      for (const other of lines.values()) if (other.size > own) return false;
      return true;
    },

    drop() {
      const longest = longestOf(lines.values());
      return longest && remove(longest, longest.entries.pop());
    },
  };
}

/** The last of the longest, whose turn is latest. */
function longestOf<Entry>(lines: Iterable<Line<Entry>>): Line<Entry> | undefined {
  let longest: Line<Entry> | undefined;
  for (const line of lines) if (!longest || line.size >= longest.size) longest = line;
  return longest;
}
