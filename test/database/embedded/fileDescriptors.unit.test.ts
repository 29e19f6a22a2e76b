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

const line = (name: string, soft: string) => `${name.padEnd(26)}${soft.padEnd(21)}${soft.padEnd(21)}files\n`;

it.each<[string, string, boolean]>([
  ['255 open files', line('Max open files', '255'), false],
  ['256 open files', line('Max open files', '256'), true],
  ['unlimited open files', line('Max open files', 'unlimited'), true],
  ['limits that the system does not show', '', true],
])('%s are enough, or not', async (_, limits, isEnough) => {
  const path = join(await createFolder(), 'limits');
  if (limits !== '') await writeFile(path, line('Max processes', '12') + limits);
  const lack = {
    says: 'The embedded database needs 256 open files, and this process may have 255',
    advice: 'Raise the limit (ulimit -n 1024), or set DATABASE_URL.',
  };
  expect(await findFileLimit(path)).toEqual(isEnough ? undefined : lack);
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
