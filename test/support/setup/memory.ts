/** Has the tests write to memory, if it has room: copying a database takes a tenth of the time there. */

import { chmodSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';

/** The file system in memory of Linux, which may be small in a container. */
const memory = '/dev/shm';
const enough = 4 * 1024 ** 3;

export function useMemory(): void {
  if (freeBytes() < enough) return;
  const folder = mkdtempSync(join(memory, 'dovetail-tests-'));
  // Other users need access: PostgreSQL does not run as root, so it may run as another user.
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
