/** Processor time of the database server, which runs on this machine: all its processes together. */

import type { BenchDatabase } from './database.ts';
import { processorTime } from './processes.ts';

/** The processes that there are now, and those among them that decode the log for somebody. */
export async function serverProcesses(database: BenchDatabase) {
  const processes = await database.query<{ pid: number; decodes: boolean }>(
    `SELECT pid, backend_type = 'walsender' AS decodes FROM pg_stat_activity WHERE pid <> pg_backend_pid()`,
  );
  const decoding = processes.filter(({ decodes }) => decodes);
  return { all: processes.map(({ pid }) => pid), decoding: decoding.map(({ pid }) => pid) };
}

/** Processor time of all of these until now, in microseconds. */
export async function usedBy(pids: readonly number[]): Promise<number> {
  const times = await Promise.all(pids.map(processorTime));
  return times.reduce<number>((sum, time) => sum + (time ?? 0), 0);
}
