/** Finds the folder of the package, which has the files that the program reads. */

import { existsSync } from 'node:fs';
import { isAbsolute, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of package.json. The program runs from `src` and, bundled, from `dist`, so the search goes upwards. */
export const root = findRoot(new URL('.', import.meta.url));

/**
 * The file of a guide, for messages in a terminal: from the current folder where that is shorter, in a clone as in an installed
 * package. What a running gateway says names its address below `/guides` instead.
 * @param reference such as `operations.md#users`.
 */
export function guideFile(reference: string): string {
  const folder = fileURLToPath(new URL('docs', root));
  const near = relative(process.cwd(), folder);
  return join(near.startsWith('..') || isAbsolute(near) ? folder : near, reference);
}

function findRoot(folder: URL): URL {
  return existsSync(new URL('package.json', folder)) ? folder : findRoot(new URL('..', folder));
}
