/** The folder of the package, in which the program finds the files that it reads. */

import { existsSync } from 'node:fs';

/** The folder of package.json. The program runs from `src` and, bundled, from `dist`, so it is looked for upwards. */
export const root = findRoot(new URL('.', import.meta.url));

function findRoot(folder: URL): URL {
  return existsSync(new URL('package.json', folder)) ? folder : findRoot(new URL('..', folder));
}
