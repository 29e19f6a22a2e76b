/** How commands end as processes of a shell: with output that cannot be written, and with a wrong name. */

import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openDatabase } from '../../src/database/database.ts';
import { loadDemo } from '../support/demo.ts';
import { copyTemplate } from '../support/gateway.ts';

let folder: string;
beforeAll(async () => {
  folder = await copyTemplate();
  const database = await openDatabase({ DATABASE_URL: undefined, DATA_DIR: folder });
  await loadDemo(database, folder);
  await database.close();
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Runs a line of Bash, in which `$dovetail` is the command. */
function shell(line: string): Promise<{ code: number; stderr: string }> {
  const dovetail = `${process.execPath} bin/dovetail.js`;
  const env = { ...process.env, DATA_DIR: folder, PORT: '0', LOG_LEVEL: 'info', dovetail };
  return new Promise((settle) => {
    execFile('bash', ['-o', 'pipefail', '-c', line], { env, timeout: 80_000 }, (error, _, stderr) => {
      settle({ code: Number(error?.code ?? 0), stderr });
    });
  });
}

it('a command succeeds also if the reader of its output has closed the pipe', async () => {
  expect(await shell('$dovetail token list --user demo | true')).toEqual({ code: 0, stderr: '' });
});

it('a full disk is reported in one line', async () => {
  expect(await shell('$dovetail token list --user demo > /dev/full')).toEqual({
    code: 1,
    stderr: expect.stringMatching(/^Standard output cannot be written: .*no space left on device.*\n$/i),
  });
});

it('a command that does not exist ends with 2', async () => {
  expect(await shell('$dovetail surf')).toMatchObject({ code: 2 });
});
