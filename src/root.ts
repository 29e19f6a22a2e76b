/** Finds the folder of the package, which has the files that the program reads. */

import { existsSync } from 'node:fs';

/** The folder of package.json. The program runs from `src` and, bundled, from `dist`, so the search goes upwards. */
export const root = findRoot(new URL('.', import.meta.url));

function findRoot(folder: URL): URL {
  return existsSync(new URL('package.json', folder)) ? folder : findRoot(new URL('..', folder));
}
