/** `dovetail migrate`. */

import { readdir, rm } from 'node:fs/promises';
import { expect, it, onTestFinished } from 'vitest';
import { openDatabase } from '../../src/database/database.ts';
import { copyUnmigrated } from '../support/gateway.ts';
import { runHere } from '../support/runHere.ts';

it('applies the pending migrations and prints them, and none the next time, while a gateway has the database open', async () => {
  const DATA_DIR = await copyUnmigrated();
  onTestFinished(() => rm(DATA_DIR, { recursive: true, force: true }));
  const entries = await readdir('prisma/migrations', { withFileTypes: true });
  const names = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  expect(await runHere(['migrate'], { DATA_DIR })).toEqual({
    code: 0,
    stdout: names.map((name) => `${name}\n`).join(''),
    stderr: `Applied ${names.length}.\n`,
  });
  const database = await openDatabase({ DATABASE_URL: undefined, DATA_DIR });
  onTestFinished(database.close);
  const { code, stdout, stderr } = await runHere(['migrate', '--json'], { DATA_DIR });
  expect({ code, stderr }).toEqual({ code: 0, stderr: 'No migrations are pending.\n' });
  expect(JSON.parse(stdout)).toEqual({ applied: [] });
});
