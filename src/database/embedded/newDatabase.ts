/**
 * The migrated database that the build packs into one file (`packDatabase.ts`). Every new data folder begins with its
 * files, which takes a moment instead of the seconds to create and migrate a database. `pack` is used by the build alone; it
 * is here since both functions define the format.
 *
 * PGlite has `dumpDataDir` and `loadDataDir` for this. With them it took more than twice as long, and 110 MiB more.
 */

import { hash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { deserialize, serialize } from 'node:v8';
import { gunzip, gzipSync } from 'node:zlib';
import { errorText, SetupError } from '../../errors.ts';
import { root } from '../../root.ts';
import { engineRelease } from '../../version.ts';
import { readMigrations } from '../migrate.ts';

/** Raise it when the way to create or pack the database changes. */
const edition = 5;

/** The path of the packed database of this version, which may not exist. Its name has everything on which its content depends. */
export async function newDatabaseFile(): Promise<string> {
  const digest = hash('sha256', JSON.stringify(await readMigrations()));
  return fileURLToPath(new URL(`dist/new-${edition}-${engineRelease}-${digest.slice(0, 16)}.gz`, root));
}

interface PackedFile {
  readonly path: string;
  /** A folder has none. Equal contents are one object, which is packed once: the databases are copies of each other. */
  readonly contents?: Uint8Array | undefined;
}

export function pack(folder: string, file: string): void {
  const known = new Map<string, Buffer>();
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).map((entry): PackedFile => {
    const place = join(entry.parentPath, entry.name);
    const path = relative(folder, place).replaceAll(sep, '/');
    if (!entry.isFile()) return { path };
    const contents = readFileSync(place);
    const key = contents.toString('latin1');
    if (!known.has(key)) known.set(key, contents);
    return { path, contents: known.get(key) };
  });
  writeFileSync(file, gzipSync(serialize(entries)));
}

/**
 * Writes the packed folders and files to a folder, which has to exist.
 * @throws {SetupError} when the file is not a packed one.
 */
export async function unpack(file: string, folder: string): Promise<void> {
  const packed = await promisify(gunzip)(await readFile(file)).catch((error) => {
    throw new SetupError(`${file} cannot be unpacked, build or install it again: ${errorText(error)}`);
  });
  // As `pack` wrote it: a folder comes before the files in it.
  const entries: PackedFile[] = deserialize(packed);
  for (const { path, contents } of entries) {
    const place = join(folder, path);
    if (contents) writeFileSync(place, contents, { mode: 0o600 });
    else mkdirSync(place, { mode: 0o700 });
  }
}
