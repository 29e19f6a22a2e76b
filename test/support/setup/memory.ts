/** Has the tests write to memory, where there is room: to copy a database there takes a tenth of the time. */

import { chmodSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';

/** The file system in memory that Linux has; containers may have a small one. */
const memory = '/dev/shm';
const enough = 4 * 1024 ** 3;

export function useMemory(): void {
  if (freeBytes() < enough) return;
  const folder = mkdtempSync(join(memory, 'dovetail-tests-'));
  // Others have to get through: PostgreSQL refuses to run as root, and runs as another user then.
  chmodSync(folder, 0o755);
  process.env.TMPDIR = folder;
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
}

function freeBytes(): number {
  try {
    const { bavail, bsize } = statfsSync(memory);
    return bavail * bsize;
  } catch {
    return 0;
  }
}
