/** Which release this is, and of which engine. */

import { readFileSync } from 'node:fs';

const { version, dependencies }: { version: string; dependencies: Record<string, string> } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
);

export const release = version;

/** The version of the embedded engine, which is given exactly. */
export const engineRelease = dependencies['@electric-sql/pglite'] ?? '';
