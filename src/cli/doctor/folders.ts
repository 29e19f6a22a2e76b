/** What the checks need to know of folders. */

import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/** The path itself, or the nearest folder above it that exists. */
export async function nearestExisting(path: string): Promise<string> {
  const exists = await stat(path).then(
    () => true,
    () => false,
  );
  return exists || dirname(path) === path ? path : nearestExisting(dirname(path));
}
