/** A folder that is packed into one file, and unpacked. */

import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { pack, unpack } from '../../../src/database/embedded/packed.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dovetail-packed-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Everything below the folder, with the contents of its files. */
async function contentsOf(path: string): Promise<[string, string | undefined][]> {
  const entries = await readdir(path, { recursive: true, withFileTypes: true });
  const contents = entries.map(async (entry): Promise<[string, string | undefined]> => {
    const place = join(entry.parentPath, entry.name);
    const text = entry.isFile() ? (await readFile(place)).toString('latin1') : undefined;
    return [place.slice(path.length), text];
  });
  return (await Promise.all(contents)).sort();
}

const emptied = async (path: string) => {
  await rm(path, { recursive: true, force: true });
  await mkdir(path);
  return path;
};

describe('a packed folder', () => {
  it('is unpacked with the same files and contents', async () => {
    // Of few characters, so that some files are equal. Zeros at the end of a file are not packed.
    const content = fc.string({ unit: fc.constantFrom('\0', '\0\0\0', 'a', '\xff'), maxLength: 6 });
    const files = fc.dictionary(
      fc.constantFrom('1', '2', 'base/1', 'base/1.x', 'base/5/1', 'wal/1'),
      content,
    );
    await fc.assert(
      fc.asyncProperty(files, async (written) => {
        const [from, to] = [await emptied(join(folder, 'from')), await emptied(join(folder, 'to'))];
        await mkdir(join(from, 'base/5'), { recursive: true });
        await mkdir(join(from, 'wal'));
        for (const [path, text] of Object.entries(written)) await writeFile(join(from, path), text, 'latin1');
        pack(from, join(folder, 'packed'));
        await unpack(join(folder, 'packed'), to);
        expect(await contentsOf(to)).toEqual(await contentsOf(from));
      }),
      { numRuns: 30 },
    );
  });

  it('is unpacked for its owner only, and has room on the disk allocated for zeros as well', async () => {
    const [from, to] = [await emptied(join(folder, 'from')), await emptied(join(folder, 'to'))];
    await mkdir(join(from, 'wal'));
    await chmod(join(from, 'wal'), 0o755);
    await writeFile(join(from, 'wal/1'), 'a', { mode: 0o644 });
    const size = 3 * 1024 ** 2 + 1;
    await truncate(join(from, 'wal/1'), size);
    pack(from, join(folder, 'packed'));
    await unpack(join(folder, 'packed'), to);
    const { mode, size: found, blocks } = await stat(join(to, 'wal/1'));
    expect([mode & 0o777, found]).toEqual([0o600, size]);
    expect(blocks * 512).toBeGreaterThanOrEqual(size);
    expect((await stat(join(to, 'wal'))).mode & 0o777).toBe(0o700);
  });
});
