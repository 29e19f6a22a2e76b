/** The limit on open files, checked before the embedded engine is opened. */

import { spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { assertFileDescriptors } from '../../../src/database/embedded/fileDescriptors.ts';

async function createFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'dovetail-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

it.each([
  ['255', false],
  ['256', true],
  ['1048576', true],
  ['unlimited', true],
])('%s open files are enough: %s', async (limit, isEnough) => {
  const path = join(await createFolder(), 'limits');
  const line = (name: string, soft: string) =>
    `${name.padEnd(26)}${soft.padEnd(21)}${soft.padEnd(21)}files\n`;
  await writeFile(path, line('Max processes', '12') + line('Max open files', limit));
  const checked = assertFileDescriptors(path);
  if (isEnough) await checked;
  else
    await expect(checked).rejects.toThrow(
      'The embedded database needs 256 open files, and this process may have 255: raise the limit (ulimit -n 1024), or set DATABASE_URL.',
    );
});

it('a system that does not show the limit is not checked', async () => {
  await assertFileDescriptors(join(await createFolder(), 'none'));
});

it.skipIf(process.platform !== 'linux')(
  'a start with too few of them ends with one line that says what to do',
  async () => {
    const { status, stderr } = spawnSync(
      'sh',
      ['-c', 'ulimit -n 100 && exec "$0" dist/cli/cli.js serve', process.execPath],
      {
        encoding: 'utf8',
        timeout: 30_000,
        env: { ...process.env, DATA_DIR: await createFolder(), PORT: '0', DATABASE_URL: undefined },
      },
    );
    expect(stderr).toMatch(
      /^The embedded database needs 256 open files, and this process may have 100: .*\n$/,
    );
    expect(status).toBe(1);
  },
);
