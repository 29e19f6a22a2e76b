import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { PGlite, type PGliteOptions } from '@electric-sql/pglite';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { readConfig } from '../../../src/config/config.ts';
import { joinDatabase, openDatabase } from '../../../src/database/database.ts';
import {
  type EmbeddedPostgres,
  findEmbedded,
  findProblem,
  hasDatabase,
  openEmbedded,
} from '../../../src/database/embedded/embedded.ts';
import { lockFolder } from '../../../src/database/embedded/folderLock.ts';
import { newDatabaseFile } from '../../../src/database/embedded/newDatabase.ts';
import { migrate } from '../../../src/database/migrate.ts';
import { openGateway } from '../../../src/server/gateway.ts';
import { copyFolder } from '../../support/copyFolder.ts';
import {
  endProcesses,
  type RunningProcess,
  serve,
  startSourceScript,
  written,
} from '../../support/processes.ts';

const source = new URL('../../../src/database/embedded/embedded.ts', import.meta.url);

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dovetail-embedded-'));
  await copyTemplateTo(folder);
});
afterEach(async () => {
  await endProcesses();
  await rm(folder, { recursive: true, force: true });
});

/** Copying a database is much faster than creating one. */
async function copyTemplateTo(dataDir: string): Promise<void> {
  const engine = inject('engine');
  if (engine.kind === 'embedded') await copyFolder(engine.template, dataDir);
}

/** A process that opens the folder, runs this work, prints `open`, and holds the folder until it is ended. */
function startHolder(dataDir: string, work = ''): RunningProcess {
  return startSourceScript(
    `import { openEmbedded } from ${JSON.stringify(source.href)};
     try {
       const { connection, close } = await openEmbedded(process.argv[1]);
       ${work}
       console.log('open');
       setInterval(() => {}, 1000);
     } catch (error) {
       console.log(error.message);
     }`,
    dataDir,
  );
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
  onTestFinished(() => spy.mockRestore());
}

async function query<Row extends pg.QueryResultRow>({ connection }: EmbeddedPostgres, sql: string) {
  const client = new pg.Client(connection);
  client.on('error', () => {});
  await client.connect();
  const { rows } = await client.query<Row>(sql);
  await client.end();
  return rows;
}

async function openAndQuery<Row extends pg.QueryResultRow>(dataDir: string, sql: string) {
  const opened = await openEmbedded(dataDir);
  try {
    return await query<Row>(opened, sql);
  } finally {
    await opened.close();
  }
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
    beforeEngine(({ dataDir: path = '' }) => copyFolder(join(folder, 'postgres'), path));
    const umask = process.umask(0);
    try {
      const opened = await openEmbedded(dataDir);
      const modes = ['.', '.s.PGSQL.5432'].map(
        async (name) => (await stat(join(dataDir, name))).mode & 0o777,
      );
      expect(await Promise.all(modes)).toEqual([0o700, 0o600]);
      await query(opened, 'CREATE TABLE more AS SELECT 1 AS value');
      await expectPrivate(dataDir);
      await opened.close();
      await expectPrivate(dataDir);
    } finally {
      process.umask(umask);
    }
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

  it('with migrations of a later version is rejected, and closed again', async () => {
    const insert = `INSERT INTO _prisma_migrations (id, checksum, migration_name, finished_at) VALUES ('x', 'x', '2999_later', now())`;
    await openAndQuery(folder, insert);
    await expect(openDatabase({ DATABASE_URL: undefined, DATA_DIR: folder })).rejects.toThrow('2999_later');
    expect(await findEmbedded(folder)).toBeUndefined();
    expect(await openAndQuery(folder, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });

  it('is rejected with one line when its path is below a broken link', async () => {
    await symlink('nowhere', join(folder, 'link'));
    const dataDir = join(folder, 'link/data');
    await expect(openEmbedded(dataDir)).rejects.toThrow(
      `DATA_DIR is ${JSON.stringify(dataDir)}, but takes a folder that can be written to: `,
    );
  });
});

describe('a folder of another user', () => {
  const user = process.geteuid?.() ?? 0;
  /** Makes this process report the id of another user as its own. */
  function become(id: number): void {
    vi.spyOn(process, 'geteuid').mockReturnValue(id);
    onTestFinished(() => void vi.restoreAllMocks());
  }

  it('is left unchanged when it has a database, and is rejected with the id of its owner', async () => {
    become(user + 1);
    const before = contents(folder);
    await expect(openEmbedded(folder)).rejects.toThrow(
      `DATA_DIR ${JSON.stringify(folder)} belongs to user ${user}, who could not use the files that user ${user + 1} would leave there. Run this as its owner, such as with sudo -u '#${user}', or give the folder away: chown -R ${user + 1} ${folder}`,
    );
    expect(contents(folder)).toEqual(before);
  });
});

describe('a second process', () => {
  it('is rejected with a line that names the first, which still works', async () => {
    const opened = await openEmbedded(folder);
    await query(opened, 'CREATE TABLE stored AS SELECT 7 AS value');
    // Several at once, since each of them checks the lock.
    const rejected = await Promise.all(
      Array.from({ length: 2 }, () => startHolder(folder)).map(({ exit }) => exit),
    );
    for (const { stdout } of rejected) {
      expect(stdout).toBe(
        `DATA_DIR ${JSON.stringify(folder)} is in use by another process. Stop it, or set DATA_DIR to another folder.\n`,
      );
    }
    expect(await query(opened, 'SELECT value FROM stored')).toEqual([{ value: 7 }]);
    await opened.close();
    expect(await openAndQuery(folder, 'SELECT value FROM stored')).toEqual([{ value: 7 }]);
  });

  it.each<[string, () => Promise<{ close(): Promise<void> }>]>([
    ['a command', () => joinDatabase({ DATABASE_URL: undefined, DATA_DIR: folder })],
    ['a gateway', () => openGateway(readConfig({ DATA_DIR: folder, PORT: '0', LOG_LEVEL: 'silent' }))],
  ])(
    'waits, if it is %s, for one that has the folder and does not listen yet, or any more',
    async (_, open) => {
      const lock = await lockFolder(folder);
      if ('holder' in lock) throw new Error('the folder is new');
      let isOpen = false;
      const opening = open().finally(() => {
        isOpen = true;
      });
      await sleep(300);
      expect(isOpen).toBe(false);
      await lock.release();
      await (await opening).close();
    },
  );

  it('opens the database of one that was killed while the engine wrote its own lock file', async () => {
    // The engine creates the file first, and writes to it afterwards.
    await writeFile(join(folder, 'postgres/postmaster.pid'), '');
    expect(await openAndQuery(folder, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });
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

  it('ends a gateway with exit code 1 and a line', async () => {
    const gateway = await serve({ DATA_DIR: folder, LOG_LEVEL: 'fatal' });
    await rm(folder, { recursive: true });
    const { code, stderr } = await gateway.exit;
    expect({ code, says: JSON.parse(stderr).msg }).toEqual({ code: 1, says: lost(folder) });
    // The gateway does not create the folder again.
    await expect(stat(folder)).rejects.toThrow('ENOENT');
  });

  it('is closed without a change to the folder that has replaced it', async () => {
    const opened = await openEmbedded(folder);
    await query(opened, 'CREATE TABLE unwritten AS SELECT 1 AS value');
    await rm(folder, { recursive: true });
    await copyTemplateTo(folder);
    const found = contents(folder);
    await opened.close();
    expect(contents(folder)).toEqual(found);
  });

  it('is closed without harm to the engine that has opened its replacement, even before the removal is noticed', async () => {
    const first = startHolder(
      folder,
      `process.once('SIGTERM', () => close().then(() => process.exit()));
       console.log(JSON.stringify(connection));`,
    );
    const [connection = ''] = /{.*}/.exec(await written(first, /open/)) ?? [];
    await rm(folder, { recursive: true });
    await mkdir(folder);
    await copyTemplateTo(folder);
    const second = await openEmbedded(folder);
    // The first may still connect by the path of its socket.
    await expect(new pg.Client(JSON.parse(connection)).connect()).rejects.toThrow('set DATABASE_URL');
    first.child.kill('SIGTERM');
    await first.exit;
    // The socket and the lock of the second engine are still there.
    await expect(openEmbedded(folder)).rejects.toThrow('is in use by another process.');
    expect(await findEmbedded(folder)).toBeDefined();
    expect(await query(second, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    await second.close();
    expect(await openAndQuery(folder, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
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
      `DATA_DIR is ${JSON.stringify(dataDir)}, but takes a folder that can be written to: No space left on device`,
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

  it.each([1, 700, 'all'])(
    'is created again or complete after a process was killed that had written %s of its files',
    async (count) => {
      const dataDir = join(folder, 'new');
      const packed = await newDatabaseFile();
      const killed = startSourceScript(
        `import fs from 'node:fs';
       import { syncBuiltinESMExports } from 'node:module';
       import { openEmbedded } from ${JSON.stringify(source.href)};
       const [, dataDir, packed, count] = process.argv;
       const kill = () => process.kill(process.pid, 'SIGKILL');
       const { writeFileSync } = fs;
       let written = 0;
       fs.writeFileSync = (path, ...what) => {
         if (path.includes('postgres.new') && written++ === Number(count)) kill();
         return writeFileSync(path, ...what);
       };
       syncBuiltinESMExports();
       await openEmbedded(dataDir, packed);
       console.log('open');
       kill();`,
        dataDir,
        packed,
        String(count),
      );
      expect((await killed.exit).stdout).toBe(count === 'all' ? 'open\n' : '');
      expect(await hasDatabase(dataDir)).toBe(count === 'all');
      const opened = await openEmbedded(dataDir, packed);
      try {
        expect(await query(opened, 'SELECT count(*)::int FROM "User"')).toEqual([{ count: 0 }]);
      } finally {
        await opened.close();
      }
      expect((await readdir(dataDir)).filter((name) => !name.startsWith('.'))).toEqual(['postgres']);
    },
  );

  it('is unpacked from the build, and is the same as one that is created and migrated', async () => {
    const dataDir = join(folder, 'new');
    const create = vi.spyOn(PGlite, 'create');
    onTestFinished(() => create.mockRestore());
    const database = await openDatabase({ DATABASE_URL: undefined, DATA_DIR: dataDir });
    await database.close();
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
    const found = await openAndQuery(dataDir, shape);
    const made = await openEmbedded(join(folder, 'made'));
    onTestFinished(made.close);
    await migrate(made.connection);
    expect(found).toEqual(await query(made, shape));
  });

  it('does not replace an existing one that cannot be opened', async () => {
    const path = join(folder, 'postgres');
    const before = contents(path);
    beforeEngine(async () => {
      throw thrown;
    });
    await expect(openEmbedded(folder)).rejects.toThrow('No space left on device');
    expect(contents(path)).toEqual(before);
  });
});

describe('a damaged database', () => {
  it('is reported with one line', async () => {
    expect(await findProblem(folder)).toBeUndefined();
    await truncate(join(folder, 'postgres', 'global', 'pg_control'), 100);
    const line = new RegExp(`^The database in ${folder} is damaged: move it away and start again \\(.*\\)$`);
    await expect(openEmbedded(folder)).rejects.toThrow(line);
    expect(await findProblem(folder)).toMatchObject({ says: expect.stringMatching(line) });
    expect(await findEmbedded(folder)).toBeUndefined();
  });

  it('is not reported for a database of another version of PostgreSQL', async () => {
    await writeFile(join(folder, 'postgres', 'PG_VERSION'), '99\n');
    await expect(openEmbedded(folder)).rejects.toThrow(
      `The database in ${folder} is of another version of PostgreSQL than this release has: open it with the release that made it`,
    );
    expect(await readFile(join(folder, 'postgres', 'PG_VERSION'), 'utf8')).toBe('99\n');
  });

  it('is not reported when a database cannot be written to', async () => {
    const obstacle = 'Permission denied';
    beforeEngine(async ({ onStderr }) => {
      // The line about the end of the engine counts, whatever else the engine prints.
      for (const line of ['LOG:  begins', `PANIC:  could not write: ${obstacle}`, 'LOG:  ends'])
        onStderr?.(line);
      throw new Error('exit 1');
    });
    await expect(openEmbedded(folder)).rejects.toThrow(
      `DATA_DIR is ${JSON.stringify(folder)}, but takes a folder that can be written to: PANIC:  could not write: ${obstacle}`,
    );
  });
});

describe('an engine that aborts', () => {
  it('fails instead of keeping its process busy for ever', async () => {
    const opened = await openEmbedded(folder);
    // PGlite cannot start programs, and throws an exception.
    await expect(query(opened, "COPY (SELECT 1) TO PROGRAM 'cat'")).rejects.toThrow();
    expect((await opened.failure).message).toMatch(/^the engine broke off: /);
    await expect(query(opened, 'SELECT 1')).rejects.toThrow();
    await opened.close();
  });
});

describe('a write that was acknowledged', () => {
  it('is still there after its process was killed', async () => {
    const rounds = 3;
    // Prints how many rows it finds, and then inserts rows and prints their ids until it is killed.
    const work = `
      const { default: pg } = await import('pg');
      const client = new pg.Client(connection);
      await client.connect();
      await client.query('CREATE TABLE IF NOT EXISTS note (id serial PRIMARY KEY, body text NOT NULL)');
      const { rows } = await client.query('SELECT count(*)::int, coalesce(max(id), 0) AS max FROM note');
      console.log('found ' + rows[0].count + ' ' + rows[0].max);
      for (;;) {
        const { rows } = await client.query("INSERT INTO note (body) VALUES (repeat('x', 2000)) RETURNING id");
        console.log('wrote ' + rows[0].id);
      }`;
    let acknowledged = 0;
    for (let round = 0; round < rounds; round++) {
      const holder = startHolder(folder, work);
      const [, count] = /found (\d+)/.exec(await written(holder, /found .*\n/)) ?? [];
      expect(Number(count)).toBeGreaterThanOrEqual(acknowledged);
      // One row may have been written whose acknowledgement was not.
      expect(Number(count)).toBeLessThanOrEqual(acknowledged + round);
      await written(holder, new RegExp(`(wrote .*\\n){${20 + round * 7}}`));
      holder.child.kill('SIGKILL');
      const { stdout } = await holder.exit;
      acknowledged = Number(count) + (stdout.match(/wrote \d+\n/g)?.length ?? 0);
    }
  });
});
