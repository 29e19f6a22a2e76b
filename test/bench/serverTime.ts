/** The processor time of the database server on this machine, summed over all of its processes. */

import type { BenchDatabase } from './database.ts';
import { processorTime } from './processes.ts';

/** The current processes of the server, and those of them that decode the log. */
export async function serverProcesses(database: BenchDatabase) {
  const processes = await database.query<{ pid: number; decodes: boolean }>(
    `SELECT pid, backend_type = 'walsender' AS decodes FROM pg_stat_activity WHERE pid <> pg_backend_pid()`,
  );
  const decoding = processes.filter(({ decodes }) => decodes);
  return { all: processes.map(({ pid }) => pid), decoding: decoding.map(({ pid }) => pid) };
}

/** The processor time of these processes so far, in microseconds. */
export async function usedBy(pids: readonly number[]): Promise<number> {
  const times = await Promise.all(pids.map(processorTime));
  return times.reduce<number>((sum, time) => sum + (time ?? 0), 0);
}
