/** Counts what a run has done to the records of a kind. */

/** Numbers of records that were written. */
export interface WriteCounts {
  created: number;
  updated: number;
  unchanged: number;
}

/** Numbers of records that were read and written. */
export interface RecordCounts extends WriteCounts {
  fetched: number;
  gone: number;
  skipped: number;
}

export const emptyRecordCounts = (): RecordCounts => ({
  fetched: 0,
  created: 0,
  updated: 0,
  unchanged: 0,
  gone: 0,
  skipped: 0,
});

export function addWriteCounts(total: WriteCounts, { created, updated, unchanged }: WriteCounts): void {
  total.created += created;
  total.updated += updated;
  total.unchanged += unchanged;
}
