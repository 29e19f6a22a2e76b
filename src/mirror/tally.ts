/** What a run has done to the records of a kind, in numbers. */

/** What writing has done. */
export interface Counts {
  created: number;
  updated: number;
  unchanged: number;
}

/** What reading and writing have done. */
export interface Tally extends Counts {
  fetched: number;
  gone: number;
  skipped: number;
}

export const emptyTally = (): Tally => ({
  fetched: 0,
  created: 0,
  updated: 0,
  unchanged: 0,
  gone: 0,
  skipped: 0,
});

export function add(total: Counts, { created, updated, unchanged }: Counts): void {
  total.created += created;
  total.updated += updated;
  total.unchanged += unchanged;
}
