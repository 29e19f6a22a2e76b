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
  /** How many entries there are: a batch is one, whatever it counts as. */
  readonly entries: number;
  add(entry: Entry): void;
  /** Takes out the oldest request of whose turn it is. */
  take(): Entry | undefined;
  /** Whether nobody would have more entries than whose this is, if it waited as well. */
  wouldHaveMost(entry: Pick<Waiting, 'key'>): boolean;
  /** Takes out the newest entry of whoever has most of them. */
  drop(): Entry | undefined;
}

interface Line<Entry> {
  readonly key: Waiting['key'];
  /** The oldest first. */
  readonly entries: Entry[];
}

export function createWaitingLine<Entry extends Waiting>(): WaitingLine<Entry> {
  /** Whose turn is next comes first. */
  const lines = new Map<Entry['key'], Line<Entry>>();
  let length = 0;
  let entries = 0;

  function remove(line: Line<Entry>, entry: Entry | undefined): Entry | undefined {
    if (!entry) return undefined;
    length -= entry.size;
    entries--;
    if (line.entries.length === 0) lines.delete(line.key);
    return entry;
  }

  return {
    get length() {
      return length;
    },
    get entries() {
      return entries;
    },

    add(entry) {
      let line = lines.get(entry.key);
      if (!line) {
        line = { key: entry.key, entries: [] };
        lines.set(entry.key, line);
      }
      line.entries.push(entry);
      length += entry.size;
      entries++;
    },

    take() {
      const [line] = lines.values();
      if (!line) return undefined;
      // Behind all others, if there is more.
      lines.delete(line.key);
      if (line.entries.length > 1) lines.set(line.key, line);
      return remove(line, line.entries.shift());
    },

    wouldHaveMost({ key }) {
      const own = 1 + (lines.get(key)?.entries.length ?? 0);
      for (const other of lines.values()) if (other.entries.length > own) return false;
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
  for (const line of lines) if (!longest || line.entries.length >= longest.entries.length) longest = line;
  return longest;
}
