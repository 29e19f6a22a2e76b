/** Creates the folder of a database. */

import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Creates the folder, and its parents, with mode 0700. Node's `mkdir` with `recursive` retries for ever in a folder in which
 * nothing can be created, such as /proc, and keeps the process from ending.
 * @param path an absolute path.
 */
export async function makeFolder(path: string): Promise<void> {
  if (await isFolder(path)) return;
  if (dirname(path) !== path) await makeFolder(dirname(path));
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have been faster.
    if (!(await isFolder(path))) throw error;
  }
}

function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
