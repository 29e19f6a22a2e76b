/**
 * Packs a folder into one file and unpacks it. The build packs a migrated database once, and every new data folder begins
 * with its files, which takes a moment instead of the seconds to create and migrate a database. `pack` is used by the build
 * alone; it is here since both functions define the format.
 *
 * PGlite has `dumpDataDir` and `loadDataDir` for this. With them it took more than twice as long, and 110 MiB more.
 */

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { promisify } from 'node:util';
import { gunzip, gzipSync } from 'node:zlib';
import { errorText, SetupError } from '../../errors.ts';

/** The beginning of a packed file: the length of this index in four bytes, then the index as JSON, then the contents. */
interface Index {
  readonly folders: readonly string[];
  readonly files: readonly PackedFile[];
}

interface PackedFile {
  readonly path: string;
  /** The length of the file with the zeros at its end, which are not packed. */
  readonly size: number;
  /** The place of its contents. Equal contents are packed once: the databases of a cluster are copies of each other. */
  readonly from: number;
  readonly to: number;
}

/** Packs the folder, and all that is in it, into the file. */
export function pack(folder: string, file: string): void {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).map((entry) => {
    const path = relative(folder, join(entry.parentPath, entry.name)).replaceAll(sep, '/');
    return { path, isFile: entry.isFile() };
  });
  const contents: Buffer[] = [];
  const places = new Map<string, { from: number; to: number }>();
  let length = 0;
  const files = entries
    .filter(({ isFile }) => isFile)
    .map(({ path }): PackedFile => {
      const whole = readFileSync(join(folder, path));
      const filled = whole.subarray(0, whole.findLastIndex((byte) => byte !== 0) + 1);
      const key = filled.toString('latin1');
      const place = places.get(key) ?? { from: length, to: length + filled.length };
      if (!places.has(key)) contents.push(filled);
      places.set(key, place);
      length = Math.max(length, place.to);
      return { path, size: whole.length, ...place };
    });
  const folders = entries.filter(({ isFile }) => !isFile).map(({ path }) => path);
  const index = Buffer.from(JSON.stringify({ folders, files } satisfies Index));
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
  // As `pack` wrote it.
  const { folders, files }: Index = JSON.parse(packed.toString('utf8', 4, start));
  // A folder comes before the folders in it.
  for (const path of folders) mkdirSync(join(folder, path), { mode: 0o700 });
  for (const { path, size, from, to } of files) {
    // The zeros are written, not left as a hole, so that later writes cannot run out of disk space.
    const whole = Buffer.alloc(size);
    packed.copy(whole, 0, start + from, start + to);
    writeFileSync(join(folder, path), whole, { mode: 0o600 });
  }
}
