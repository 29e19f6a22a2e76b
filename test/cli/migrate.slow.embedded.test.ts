/** `dovetail migrate`. */

import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { openDatabase } from '../../src/database/database.ts';
import { copyTemplate } from '../support/gateway.ts';
import { runHere } from '../support/runHere.ts';

// Creating a database is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 });

let folder: string;
let all: string[];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dovetail-migrate-'));
  const entries = await readdir('prisma/migrations', { withFileTypes: true });
  all = entries
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort();
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('dovetail migrate', () => {
  it('applies the pending migrations and prints them, and none the next time', async () => {
    expect(await runHere(['migrate'], { DATA_DIR: folder })).toEqual({
      code: 0,
      stdout: all.map((name) => `${name}\n`).join(''),
      stderr: `Applied ${all.length}.\n`,
    });
    const { code, stdout, stderr } = await runHere(['migrate', '--json'], { DATA_DIR: folder });
    expect({ code, stderr }).toEqual({ code: 0, stderr: 'No migrations are pending.\n' });
    expect(JSON.parse(stdout)).toEqual({ applied: [] });
  });

  it('works while a gateway has the embedded database open', async () => {
    const open = await copyTemplate();
    const database = await openDatabase({ DATABASE_URL: undefined, DATA_DIR: open });
    try {
      expect(await runHere(['migrate'], { DATA_DIR: open })).toEqual({
        code: 0,
        stdout: '',
        stderr: 'No migrations are pending.\n',
      });
    } finally {
      await database.close();
      await rm(open, { recursive: true, force: true });
    }
  });

  it('exits with 1 and one line if the database cannot be reached', async () => {
    const { code, stdout, stderr } = await runHere(['migrate'], {
      DATABASE_URL: 'postgresql://me:secret@127.0.0.1:1/app',
    });
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^DATABASE_URL is .*, but cannot be reached: connect ECONNREFUSED.*\n$/);
  });
});
