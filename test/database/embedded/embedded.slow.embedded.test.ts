import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { PGlite, type PGliteOptions } from '@electric-sql/pglite';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { readConfig } from '../../../src/config/config.ts';
import { joinDatabase, openDatabase } from '../../../src/database/database.ts';
import {
  type EmbeddedPostgres,
  findEmbedded,
  hasDatabase,
  openEmbedded,
} from '../../../src/database/embedded/embedded.ts';
import { lockFolder } from '../../../src/database/embedded/folder.ts';
import { newDatabaseFile } from '../../../src/database/embedded/newDatabase.ts';
import { migrate } from '../../../src/database/migrate.ts';
import { openGateway } from '../../../src/server/gateway.ts';
import { copyFolder } from '../../support/copyFolder.ts';
import { newFolder } from '../../support/newFolder.ts';
import { endProcesses, serve, startSourceScript, written } from '../../support/processes.ts';

const source = new URL('../../../src/database/embedded/embedded.ts', import.meta.url);

let folder: string;
beforeEach(() => {
  folder = newFolder();
});
afterEach(async () => {
  await endProcesses();
  await rm(folder, { recursive: true, force: true });
});

/** Copying a database is much faster than creating one. */
async function copyTemplate(): Promise<void> {
  const engine = inject('engine');
  if (engine.kind === 'embedded') await copyFolder(engine.template, folder);
}

/** Runs this with the options of each engine before it is opened. */
function beforeEngine(work: (options: PGliteOptions) => Promise<void>): void {
  const create = PGlite.create.bind(PGlite);
  const spy = vi.spyOn(PGlite, 'create');
  const open = async (options: PGliteOptions) => {
    await work(options);
    return create(options);
  };
  // Of its two overloads, this one is used.
  spy.mockImplementation(open as unknown as typeof PGlite.create);
}

async function query<Row extends pg.QueryResultRow>({ connection }: EmbeddedPostgres, sql: string) {
  const client = new pg.Client(connection);
  client.on('error', () => {});
  await client.connect();
  const { rows } = await client.query<Row>(sql);
  await client.end();
  return rows;
}

/** Checks that other users can neither read, write nor enter anything in the folder. */
async function expectPrivate(dataDir: string): Promise<void> {
  const names = await readdir(dataDir);
  const open = await Promise.all(
    names.map(async (name) => ((await stat(join(dataDir, name))).mode & 0o077 ? [name] : [])),
  );
  expect(names).toContain('postgres');
  expect(open.flat()).toEqual([]);
}

describe('a folder', () => {
  it('is created with its parents for its owner only, whatever the umask, and has no socket once it is closed', async () => {
    const dataDir = join(folder, 'a', 'b');
    // Copies a database instead of creating one, which takes long.
    await copyTemplate();
    beforeEngine(({ dataDir: path = '' }) => copyFolder(join(folder, 'postgres'), path));
    const umask = process.umask(0);
    onTestFinished(() => void process.umask(umask));
    const opened = await openEmbedded(dataDir);
    const modes = ['.', '.s.PGSQL.5432'].map(async (name) => (await stat(join(dataDir, name))).mode & 0o777);
    expect(await Promise.all(modes)).toEqual([0o700, 0o600]);
    await query(opened, 'CREATE TABLE more AS SELECT 1 AS value');
    expect(await query(opened, 'SHOW shared_buffers')).toEqual([{ shared_buffers: '16MB' }]);
    await expectPrivate(dataDir);
    await opened.close();
    await expectPrivate(dataDir);
    // Not every tool can copy a socket.
    const entries = await readdir(dataDir, { withFileTypes: true });
    expect(entries.filter((entry) => entry.isSocket())).toEqual([]);
  });

  it('is rejected when its path is too long for the address of a socket', async () => {
    // The limit is in bytes, of which this has more than characters.
    const dataDir = join(folder, '深'.repeat(25));
    const longest = process.platform === 'linux' ? 88 : 84;
    await expect(openEmbedded(dataDir)).rejects.toThrow(
      `DATA_DIR is ${JSON.stringify(dataDir)}, but takes a path of at most ${longest} bytes, since there is a socket in it.`,
    );
  });

  it.each(['link', 'link/data', '/proc/data', '/proc/a/b', '/dev/null', '/dev/null/data'])(
    'is rejected with one line when no folder can be made there: %s',
    async (path) => {
      await symlink('nowhere', join(folder, 'link'));
      const dataDir = resolve(folder, path);
      await expect(openEmbedded(dataDir)).rejects.toThrow(
        `DATA_DIR is ${JSON.stringify(dataDir)}, but takes a folder that can be written to: E`,
      );
    },
  );
});

it('a folder of another user is left unchanged when it has a database, and is rejected with the id of its owner', async () => {
  await copyTemplate();
  const user = process.geteuid?.() ?? 0;
  // This process reports the id of another user as its own.
  vi.spyOn(process, 'geteuid').mockReturnValue(user + 1);
  const before = contents(folder);
  await expect(openEmbedded(folder)).rejects.toThrow(
    `DATA_DIR ${JSON.stringify(folder)} belongs to user ${user}, who could not use the files that user ${user + 1} would leave there`,
  );
  expect(contents(folder)).toEqual(before);
});

describe('who opens a folder second', () => {
  it('is rejected with a line that names the first, which still works', async () => {
    await copyTemplate();
    const opened = await openEmbedded(folder);
    await expect(openEmbedded(folder)).rejects.toThrow(
      `DATA_DIR ${JSON.stringify(folder)} is in use by another process. Stop it, or set DATA_DIR to another folder.`,
    );
    expect(await query(opened, 'SELECT 7 AS value')).toEqual([{ value: 7 }]);
    await opened.close();
  });

  it.each<[string, () => Promise<{ close(): Promise<void> }>]>([
    ['a command', () => joinDatabase({ DATABASE_URL: undefined, DATA_DIR: folder })],
    ['a gateway', () => openGateway(readConfig({ DATA_DIR: folder, PORT: '0', LOG_LEVEL: 'silent' }))],
  ])(
    'waits, if it is %s, for one that has the folder and does not listen yet, or any more',
    async (_, open) => {
      await copyTemplate();
      const lock = await lockFolder(folder);
      let isOpen = false;
      const opening = open().finally(() => {
        isOpen = true;
      });
      await sleep(150);
      expect(isOpen).toBe(false);
      await lock.release();
      await (await opening).close();
    },
  );
});

/** A digest of each file of the folder. */
function contents(dataDir: string): Record<string, string> {
  const entries = readdirSync(dataDir, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return Object.fromEntries(
    files.map((path) => [path, createHash('sha256').update(readFileSync(path)).digest('hex')]),
  );
}

describe('a folder that is removed while it is open', () => {
  const lost = (dataDir: string) =>
    `DATA_DIR ${JSON.stringify(dataDir)} was removed or replaced while it was open. Nothing more is written to it.`;

  it('ends a gateway with exit code 1 and a line, and without the delay of a shutdown', async () => {
    await copyTemplate();
    const gateway = await serve({ DATA_DIR: folder, LOG_LEVEL: 'fatal', SHUTDOWN_DELAY: '600' });
    await rm(folder, { recursive: true });
    const { code, stderr } = await gateway.exit;
    expect({ code, says: JSON.parse(stderr).msg }).toEqual({ code: 1, says: lost(folder) });
    // The gateway does not create the folder again.
    await expect(stat(folder)).rejects.toThrow('ENOENT');
  });

  it('is closed without harm to the folder that has replaced it, and to the engine that has opened that', async () => {
    await copyTemplate();
    const first = await openEmbedded(folder);
    await query(first, 'CREATE TABLE unwritten AS SELECT 1 AS value');
    await rm(folder, { recursive: true });
    await copyTemplate();
    const second = await openEmbedded(folder);
    // The first may still connect by the path of its socket.
    await expect(new pg.Client(first.connection).connect()).rejects.toThrow('set DATABASE_URL');
    const found = contents(folder);
    await first.close();
    expect(contents(folder)).toEqual(found);
    // The socket and the lock of the second engine are still there.
    await expect(openEmbedded(folder)).rejects.toThrow('is in use by another process.');
    expect(await findEmbedded(folder)).toBeDefined();
    expect(await query(second, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    await second.close();
  });
});

describe('a new database', () => {
  const thrown = { name: 'ErrnoError', errno: 51 };

  it('that does not fit on the disk leaves no files behind, and is not reported as damaged', async () => {
    const dataDir = join(folder, 'new');
    beforeEngine(async ({ dataDir: path = '' }) => {
      await writeFile(join(path, 'part'), '');
      throw thrown;
    });
    await expect(openEmbedded(dataDir)).rejects.toThrow(
      `The database in ${dataDir} cannot be opened: No space left on device`,
    );
    expect(await readdir(dataDir)).not.toContain('postgres');
  });

  it('that cannot be unpacked leaves no files behind, and is not reported as damaged', async () => {
    const dataDir = join(folder, 'new');
    const packed = join(folder, 'packed');
    await writeFile(packed, (await readFile(await newDatabaseFile())).subarray(0, -1));
    await expect(openEmbedded(dataDir, packed)).rejects.toThrow(
      `${packed} cannot be unpacked, build or install it again: unexpected end of file`,
    );
    expect(await readdir(dataDir)).toEqual(['.lock.1']);
  });

  it('is created again after a process was killed that had written a part of its files', async () => {
    const dataDir = join(folder, 'new');
    const packed = await newDatabaseFile();
    const killed = startSourceScript(
      `import fs from 'node:fs';
       import { syncBuiltinESMExports } from 'node:module';
       import { openEmbedded } from ${JSON.stringify(source.href)};
       const { writeFileSync } = fs;
       let written = 0;
       fs.writeFileSync = (path, ...what) => {
         if (path.includes('postgres.new') && written++ === 700) process.kill(process.pid, 'SIGKILL');
         return writeFileSync(path, ...what);
       };
       syncBuiltinESMExports();
       await openEmbedded(...process.argv.slice(1));`,
      dataDir,
      packed,
    );
    await killed.exit;
    expect(await readdir(dataDir)).toContain('postgres.new');
    expect(await hasDatabase(dataDir)).toBe(false);
    const opened = await openEmbedded(dataDir, packed);
    expect(await query(opened, 'SELECT count(*)::int FROM "User"')).toEqual([{ count: 0 }]);
    await opened.close();
    expect(await hasDatabase(dataDir)).toBe(true);
    expect((await readdir(dataDir)).filter((name) => !name.startsWith('.'))).toEqual(['postgres']);
  });

  it('is unpacked from the build, and is the same as one that is created and migrated', async () => {
    const dataDir = join(folder, 'new');
    const create = vi.spyOn(PGlite, 'create');
    const { pool, close } = await openDatabase({ DATABASE_URL: undefined, DATA_DIR: dataDir });
    onTestFinished(close);
    // Once to open it, whereas one that is created is opened twice.
    expect(create).toHaveBeenCalledOnce();
    const shape = `
      SELECT json_agg(found ORDER BY found::text) AS found FROM (
        SELECT table_name || column_name || data_type || coalesce(column_default, '') FROM information_schema.columns WHERE table_schema = 'public'
        UNION ALL SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace
        UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
        UNION ALL SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
        UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
        UNION ALL SELECT migration_name || checksum FROM _prisma_migrations) AS all_of_it (found)`;
    const made = await openEmbedded(join(folder, 'made'));
    onTestFinished(made.close);
    await migrate(made.connection);
    expect((await pool.query(shape)).rows).toEqual(await query(made, shape));
  });

  it('does not replace an existing one that cannot be opened', async () => {
    const path = join(folder, 'postgres');
    await mkdir(path);
    await writeFile(join(path, 'PG_VERSION'), '17');
    beforeEngine(async () => {
      throw thrown;
    });
    await expect(openEmbedded(folder)).rejects.toThrow('No space left on device');
    expect(await readdir(path)).toEqual(['PG_VERSION']);
  });
});

describe('a database that cannot be opened', () => {
  beforeEach(() => copyTemplate());

  it('is reported with one line', async () => {
    await truncate(join(folder, 'postgres', 'global', 'pg_control'), 100);
    const line = new RegExp(`^The database in ${folder} cannot be opened: .*$`);
    // The second time, the folder is not in use either.
    for (let time = 0; time < 2; time++) await expect(openEmbedded(folder)).rejects.toThrow(line);
    expect(await findEmbedded(folder)).toBeUndefined();
  });

  it('of another version of PostgreSQL is told from a damaged one', async () => {
    await writeFile(join(folder, 'postgres', 'PG_VERSION'), '99\n');
    await expect(openEmbedded(folder)).rejects.toThrow(/cannot be opened: .*incompatible with server$/);
    expect(await readFile(join(folder, 'postgres', 'PG_VERSION'), 'utf8')).toBe('99\n');
  });

  it('that cannot be written to is told from a damaged one', async () => {
    const obstacle = 'Permission denied';
    beforeEngine(async ({ onStderr }) => {
      // The line about the end of the engine counts, whatever else the engine prints.
      for (const line of ['LOG:  begins', `PANIC:  could not write: ${obstacle}`, 'LOG:  ends'])
        onStderr?.(line);
      throw new Error('exit 1');
    });
    await expect(openEmbedded(folder)).rejects.toThrow(
      `The database in ${folder} cannot be opened: PANIC:  could not write: ${obstacle}`,
    );
  });
});

it('a write that was acknowledged is still there after its process was killed, even while it wrote its own lock file', async () => {
  // Prints how many rows it finds, and then inserts rows and prints their ids until it is killed.
  const work = `
      import { openEmbedded } from ${JSON.stringify(source.href)};
      import pg from 'pg';
      const { connection } = await openEmbedded(process.argv[1]);
      const client = new pg.Client(connection);
      await client.connect();
      await client.query('CREATE TABLE IF NOT EXISTS note (id serial PRIMARY KEY, body text NOT NULL)');
      const { rows } = await client.query('SELECT count(*)::int FROM note');
      console.log('found ' + rows[0].count);
      for (;;) {
        const { rows } = await client.query("INSERT INTO note (body) VALUES (repeat('x', 2000)) RETURNING id");
        console.log('wrote ' + rows[0].id);
      }`;
  await copyTemplate();
  const first = startSourceScript(work, folder);
  await written(first, /(wrote .*\n){30}/);
  first.child.kill('SIGKILL');
  const acknowledged = (await first.exit).stdout.match(/wrote \d+\n/g)?.length ?? 0;
  // The engine creates the file first, and writes to it afterwards.
  await writeFile(join(folder, 'postgres/postmaster.pid'), '');
  const second = startSourceScript(work, folder);
  const [, found] = /found (\d+)/.exec(await written(second, /found .*\n/)) ?? [];
  // One row may have been written whose acknowledgement was not.
  expect([acknowledged, acknowledged + 1]).toContain(Number(found));
});
