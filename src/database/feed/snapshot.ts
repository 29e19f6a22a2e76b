/** Snapshots of the database: which transactions are over, and which go on. */

/** What `pg_current_snapshot()` says. */
export interface Snapshot {
  /** All transactions before this one are over. */
  readonly xmin: number;
  /** This transaction and those after it are not over. */
  readonly xmax: number;
  /** Those between the two that are not over. */
  readonly underway: ReadonlySet<number>;
}

/** Reads the text of a snapshot: `<xmin>:<xmax>:<those underway>`, as in `10:20:10,14,15`. */
export function parseSnapshot(text: string): Snapshot {
  const [xmin = '', xmax = '', list = ''] = text.split(':');
  const underway = list === '' ? [] : list.split(',').map(Number);
  return { xmin: Number(xmin), xmax: Number(xmax), underway: new Set(underway) };
}

/**
 * Whether a transaction is over for a snapshot: whether that shows what it has written, or that it has failed.
 * @param transaction the lower 32 bits of its id, as the log has it. It has to be within two thousand million of the snapshot.
 */
export function isOver(transaction: number, { xmin, xmax, underway }: Snapshot): boolean {
  // The difference of the lower 32 bits, with a sign.
  const id = xmax + ((transaction - xmax) | 0);
  return id < xmin || (id < xmax && !underway.has(id));
}
