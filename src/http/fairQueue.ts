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

export interface FairQueue<Entry extends Waiting> {
  /** How many requests wait. */
  readonly length: number;
  /** How many entries there are: a batch is one, whatever it counts as. */
  readonly entries: number;
  add(entry: Entry): void;
  /** Takes out the oldest request of whose turn it is. */
  take(): Entry | undefined;
  /** Whether nobody would have more entries than whose this is, if it waited as well. */
  wouldHaveMost(entry: Pick<Waiting, 'key'>): boolean;
  /** Takes out the newest entries of whoever has most of them, as long as it says so, and more than one is there. */
  drop(isTooLong: () => boolean): Entry[];
}

interface ClientQueue<Entry> {
  readonly key: Waiting['key'];
  /** The oldest first. */
  readonly entries: Entry[];
}

export function createFairQueue<Entry extends Waiting>(): FairQueue<Entry> {
  /** Whose turn is next comes first. */
  const lines = new Map<Entry['key'], ClientQueue<Entry>>();
  let length = 0;
  let entries = 0;

  function remove(line: ClientQueue<Entry>, entry: Entry | undefined): Entry | undefined {
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

    drop(isTooLong) {
      const dropped: Entry[] = [];
      for (const line of longestFirst(lines.values())) {
        if (entries < 2 || !isTooLong()) break;
        const entry = remove(line, line.entries.pop());
        if (entry) dropped.push(entry);
      }
      return dropped;
    },
  };
}

/** Each time the one that has most, of several the one whose turn is latest. What it has may become less meanwhile. */
function* longestFirst<Entry>(lines: Iterable<ClientQueue<Entry>>): Generator<ClientQueue<Entry>> {
  const ranks: ClientQueue<Entry>[][] = [];
  for (const line of lines) rank(ranks, line);
  while (ranks.length > 0) {
    const line = ranks.at(-1)?.pop();
    if (line) {
      yield line;
      rank(ranks, line);
    } else {
      ranks.pop();
    }
  }
}

/** @param ranks the lines by how many entries they have. */
function rank<Entry>(ranks: ClientQueue<Entry>[][], line: ClientQueue<Entry>): void {
  const { length } = line.entries;
  if (length === 0) return;
  while (ranks.length <= length) ranks.push([]);
  ranks[length]?.push(line);
}
