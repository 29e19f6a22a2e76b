/** Has the tests write to a folder of their own: in memory, if it has room, where copying a database takes a tenth of the time. */

import { chmodSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The file system in memory of Linux, which may be small in a container. */
const memory = '/dev/shm';
const enough = 4 * 1024 ** 3;

/** The folder is removed at the end of the run, with all that tests leave there. */
export function useTemporaryFolder(): void {
  const folder = mkdtempSync(join(freeBytes() < enough ? tmpdir() : memory, 'dovetail-tests-'));
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
