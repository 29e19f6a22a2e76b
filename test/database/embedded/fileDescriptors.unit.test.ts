/** The limit on open files, checked before the embedded engine is opened. */

import { spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { findFileLimit } from '../../../src/database/embedded/fileDescriptors.ts';

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
  const lack = {
    says: 'The embedded database needs 256 open files, and this process may have 255',
    advice: 'Raise the limit (ulimit -n 1024), or set DATABASE_URL.',
  };
  expect(await findFileLimit(path)).toEqual(isEnough ? undefined : lack);
});

it('a system that does not show the limit is not checked', async () => {
  expect(await findFileLimit(join(await createFolder(), 'none'))).toBeUndefined();
});

const run = async (command: string) =>
  spawnSync('sh', ['-c', `ulimit -n 100 && exec "$0" bin/dovetail.js ${command}`, process.execPath], {
    encoding: 'utf8',
    timeout: 30_000,
    env: { ...process.env, DATA_DIR: await createFolder(), PORT: '0', DATABASE_URL: undefined },
  });

describe.skipIf(process.platform !== 'linux')('with too few of them', () => {
  const says = 'The embedded database needs 256 open files, and this process may have 100';

  it('a start ends with one line that says what to do', async () => {
    const { status, stderr } = await run('serve');
    expect(stderr).toMatch(new RegExp(`^${says}\\. .*\n$`));
    expect(status).toBe(1);
  });

  it('the doctor finds that problem', async () => {
    const { status, stdout } = await run('doctor');
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain(says);
    expect(status).toBe(1);
  });
});
