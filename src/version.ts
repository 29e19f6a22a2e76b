/** The versions of Dovetail, of its REST interface, and of its embedded engine. */

import { readFileSync } from 'node:fs';
import { root } from './root.ts';

const { version, dependencies }: { version: string; dependencies: Record<string, string> } = JSON.parse(
  readFileSync(new URL('package.json', root), 'utf8'),
);

export const release = version;

/** The version of the REST interface, which does not depend on the version of the gateway. */
export const interfaceVersion = '1.0.0';

/** The version of the embedded engine. package.json names an exact version, not a range. */
export const engineRelease = dependencies['@electric-sql/pglite'] ?? '';
