/**
 * The queue of waiting requests. Each client has a queue of its own, and these are served in turn, so that a client that sends
 * many requests delays only itself (fair queueing, as in RFC 8290).
 */

export interface Waiting {
  /** The client that waits. Entries with equal keys share a queue. */
  readonly key: number | string;
  /** How many requests it counts as. */
  readonly size: number;
}

export interface FairQueue<Entry extends Waiting> {
  /** How many requests wait. */
  readonly length: number;
  /** How many entries there are. A batch is one entry, however many requests it counts as. */
  readonly entries: number;
  /** How many clients have entries. */
  readonly clients: number;
  /** Whether the client has entries. */
  has(key: Waiting['key']): boolean;
  add(entry: Entry): void;
  /** Removes and returns the oldest entry of the client whose turn it is, among clients for which `mayHaveTurn` returns true. */
  take(mayHaveTurn?: (key: Waiting['key']) => boolean): Entry | undefined;
  /** Whether the client would have as many entries as any other, or more, if this one waited as well. */
  wouldHaveMost(entry: Pick<Waiting, 'key'>): boolean;
  /** Removes and returns the newest entries of the clients with most of them, while `isTooLong` returns true and more than one is left. */
  drop(isTooLong: () => boolean): Entry[];
}

interface ClientQueue<Entry> {
  readonly key: Waiting['key'];
  /** The oldest first. */
  readonly entries: Entry[];
}

export function createFairQueue<Entry extends Waiting>(): FairQueue<Entry> {
  /** The client whose turn is next comes first. */
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

    get clients() {
      return lines.size;
    },
    has: (key) => lines.has(key),

    add(entry) {
      const line = lines.get(entry.key) ?? { key: entry.key, entries: [] };
      lines.set(entry.key, line);
      line.entries.push(entry);
      length += entry.size;
      entries++;
    },

    take(mayHaveTurn = () => true) {
      const line = firstOf(lines.values(), ({ key }) => mayHaveTurn(key));
      if (!line) return undefined;
      // To the end. `remove` deletes the line of a client without further entries.
      lines.delete(line.key);
      lines.set(line.key, line);
      return remove(line, line.entries.shift());
    },

    wouldHaveMost({ key }) {
      const own = 1 + (lines.get(key)?.entries.length ?? 0);
      return !firstOf(lines.values(), ({ entries: others }) => others.length > own);
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

function firstOf<Item>(items: Iterable<Item>, isWanted: (item: Item) => boolean): Item | undefined {
  for (const item of items) if (isWanted(item)) return item;
  return undefined;
}

/** Yields, each time, the queue with most entries; of several such queues the one whose turn comes last. The caller may remove entries. */
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
