/**
 * The migrated database that the build packs into one file (`src/cli/packDatabase.ts`). Every new data folder begins with its
 * files, which takes a moment instead of the seconds to create and migrate a database. `pack` is used by the build alone; it
 * is here since both functions define the format.
 *
 * PGlite has `dumpDataDir` and `loadDataDir` for this. With them it took more than twice as long, and 110 MiB more.
 */

import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gunzip, gzipSync } from 'node:zlib';
import { errorText, SetupError } from '../../errors.ts';
import { root } from '../../root.ts';
import { engineRelease } from '../../version.ts';
import { readMigrations } from '../migrate.ts';

/** Raise it when the way to create or pack the database changes. */
const edition = 3;

/** The path of the packed database of this version, which may not exist. Its name has everything on which its content depends. */
export async function newDatabaseFile(): Promise<string> {
  const digest = createHash('sha256')
    .update(JSON.stringify(await readMigrations()))
    .digest('hex');
  return fileURLToPath(new URL(`dist/new-${edition}-${engineRelease}-${digest.slice(0, 16)}.gz`, root));
}

/**
 * A file, or a folder if it has no size. A packed file begins with the length of this index in four bytes and the index as
 * JSON. The contents follow.
 */
interface PackedFile {
  readonly path: string;
  /** The length of the file with the zeros at its end, which are not packed. */
  readonly size?: number;
  /** The place of its contents. Equal contents are packed once: the databases of a cluster are copies of each other. */
  readonly from?: number;
  readonly to?: number;
}

/** Packs the folders and files of a folder into one file. */
export function pack(folder: string, file: string): void {
  const contents: Buffer[] = [];
  const places = new Map<string, { from: number; to: number }>();
  let length = 0;
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).map((entry): PackedFile => {
    const place = join(entry.parentPath, entry.name);
    const path = relative(folder, place).replaceAll(sep, '/');
    if (!entry.isFile()) return { path };
    const whole = readFileSync(place);
    const filled = whole.subarray(0, whole.findLastIndex((byte) => byte !== 0) + 1);
    const key = filled.toString('latin1');
    const known = places.get(key) ?? { from: length, to: length + filled.length };
    if (!places.has(key)) contents.push(filled);
    places.set(key, known);
    length = Math.max(length, known.to);
    return { path, size: whole.length, ...known };
  });
  const index = Buffer.from(JSON.stringify(entries));
  const start = Buffer.alloc(4);
  start.writeUInt32LE(index.length);
  writeFileSync(file, gzipSync(Buffer.concat([start, index, ...contents])));
}

/**
 * Writes the packed folders and files to a folder, which has to exist.
 * @throws {SetupError} when the file is not a packed one.
 */
export async function unpack(file: string, folder: string): Promise<void> {
  const packed = await promisify(gunzip)(await readFile(file)).catch((error) => {
    throw new SetupError(`${file} cannot be unpacked, build or install it again: ${errorText(error)}`);
  });
  const start = 4 + packed.readUInt32LE(0);
  // As `pack` wrote it: a folder comes before the files in it.
  const entries: PackedFile[] = JSON.parse(packed.toString('utf8', 4, start));
  for (const { path, size, from = 0, to = 0 } of entries) {
    if (size === undefined) mkdirSync(join(folder, path), { mode: 0o700 });
    else {
      // The zeros are written, not left as a hole, so that later writes cannot run out of disk space.
      const whole = Buffer.alloc(size);
      packed.copy(whole, 0, start + from, start + to);
      writeFileSync(join(folder, path), whole, { mode: 0o600 });
    }
  }
}
