/** The migrated database that the build packs (`src/cli/packDatabase.ts`), for new folders to begin with. */

import { fileURLToPath } from 'node:url';
import { root } from '../root.ts';
import { engineRelease } from '../version.ts';
import { digestOfMigrations } from './migrate.ts';

const built = new URL('dist/', root);

/** To be raised with every change of how it is made or packed. */
const edition = 2;

/**
 * The file that has it. It is named after all that it depends on, so that one of another version is none of this one's:
 * where it is missing, a new folder gets what it has by making it.
 */
export async function newDatabaseFile(): Promise<string> {
  const digest = await digestOfMigrations();
  return fileURLToPath(new URL(`new-${edition}-${engineRelease}-${digest.slice(0, 16)}.gz`, built));
}
