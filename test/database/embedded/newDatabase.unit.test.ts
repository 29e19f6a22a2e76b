/** A folder that is packed into one file, and unpacked. */

import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, it } from 'vitest';
import { pack, unpack } from '../../../src/database/embedded/newDatabase.ts';
import { newFolder } from '../../support/newFolder.ts';

let folder: string;
beforeEach(() => {
  folder = newFolder();
});

it('a packed folder is unpacked with the same files and contents, for its owner only, with room for its zeros', async () => {
  const [from, to] = [join(folder, 'from'), join(folder, 'to')];
  await mkdir(join(from, 'base/empty'), { recursive: true, mode: 0o755 });
  await mkdir(to);
  // Equal files are packed once, and zeros at the end of a file are not packed.
  const size = 3 * 1024 ** 2 + 1;
  const random = randomBytes(100_000).toString('latin1');
  const files = {
    none: '',
    zeros: '\0\0',
    '1': random,
    'base/1': random,
    'base/2': `a${'\0'.repeat(size - 1)}`,
  };
  for (const [path, text] of Object.entries(files)) await writeFile(join(from, path), text, 'latin1');
  pack(from, join(folder, 'packed'));
  expect((await stat(join(folder, 'packed'))).size).toBeLessThan(150_000);
  await unpack(join(folder, 'packed'), to);
  // It fails if there is a difference.
  execFileSync('diff', ['--recursive', from, to]);
  const { mode, blocks } = await stat(join(to, 'base/2'));
  expect(mode & 0o777).toBe(0o600);
  expect(blocks * 512).toBeGreaterThanOrEqual(size);
  expect((await stat(join(to, 'base'))).mode & 0o777).toBe(0o700);
});
