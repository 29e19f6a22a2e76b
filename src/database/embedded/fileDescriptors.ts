/** The limit on open files, which the embedded engine reaches sooner than any client of a server would. */

import { readFile } from 'node:fs/promises';
import type { Diagnosis } from '../../errors.ts';

/** The engine has about 150 files open, and each client and connection is one more. */
const fewest = 256;

/**
 * The lack of descriptors, if there is one. The engine would report it as files that are there already.
 * @param path the limits of the process as Linux shows them. Other systems have no such file, and are not checked.
 */
export async function findFileLimit(path = '/proc/self/limits'): Promise<Diagnosis | undefined> {
  const limits = await readFile(path, 'utf8').catch(() => '');
  const [, limit] = /^Max open files\s+(\d+)\s/m.exec(limits) ?? [];
  if (limit === undefined || Number(limit) >= fewest) return undefined;
  return {
    says: `The embedded database needs ${fewest} open files, and this process may have ${limit}`,
    advice: 'Raise the limit (ulimit -n 1024), or set DATABASE_URL.',
  };
}
