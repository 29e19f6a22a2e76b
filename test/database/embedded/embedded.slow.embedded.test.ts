import { createHash } from 'node:crypto';
import filesystem, { readdirSync, readFileSync, rmSync, type StatsFs } from 'node:fs';
import fs, {
  chmod,
  chown,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { PGlite, type PGliteOptions } from '@electric-sql/pglite';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { joinDatabase, openDatabase } from '../../../src/database/database.ts';
import {
  type EmbeddedPostgres,
  findEmbedded,
  findProblem,
  hasDatabase,
  openEmbedded,
} from '../../../src/database/embedded/embedded.ts';
import type { Change } from '../../../src/database/feed/changeFeed.ts';
import { listenToEngine } from '../../../src/database/feed/engine.ts';
import { migrate } from '../../../src/database/migrate.ts';
import { newDatabaseFile } from '../../../src/database/newDatabase.ts';
import { copyFolder, copyFolderSync } from '../../support/copyFolder.ts';
import { endProcesses, type RunningProcess, serve, startScript, written } from '../../support/processes.ts';

const built = new URL('../../../dist/database/embedded/embedded.js', import.meta.url);

// Starting processes takes its time on a busy machine.
vi.setConfig({ testTimeout: 90_000 });

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dovetail-embedded-'));
  await copyTemplateTo(folder);
});
afterEach(async () => {
  await endProcesses();
  await rm(folder, { recursive: true, force: true });
});

/** To copy a database is much faster than to create one. */
async function copyTemplateTo(dataDir: string): Promise<void> {
  const engine = inject('engine');
  if (engine.kind === 'embedded') await copyFolder(engine.template, dataDir);
}

async function made(path: string): Promise<string> {
  await mkdir(path);
  return path;
}

/** A process that opens the folder, says so, and holds it until it is ended. It may be told what to do first. */
function startHolder(dataDir: string, work = ''): RunningProcess {
  return startScript(
    `import { openEmbedded } from ${JSON.stringify(built.href)};
     try {
       const { engine, connection, close, failure } = await openEmbedded(process.argv[1]);
       ${work}
       console.log('open');
       setInterval(() => {}, 1000);
     } catch (error) {
       console.log(error.message);
     }`,
    dataDir,
  );
}

/** Has something done with the options of each engine before it is opened. */
function beforeEngine(work: (options: PGliteOptions) => Promise<void>): void {
  const create = PGlite.create.bind(PGlite);
  const spy = vi.spyOn(PGlite, 'create');
  const open = async (options: PGliteOptions) => {
    await work(options);
    return create(options);
  };
  // Of its two forms, this is the one in use.
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

/** Nothing that stands in the folder can be read, written or gone through by others. */
async function expectClosed(dataDir: string): Promise<void> {
  const names = await readdir(dataDir);
  const open = await Promise.all(
    names.map(async (name) => ((await stat(join(dataDir, name))).mode & 0o077 ? [name] : [])),
  );
  expect(names).toContain('postgres');
  expect(open.flat()).toEqual([]);
}

describe('a folder', () => {
  it('keeps its data', async () => {
    await openAndQuery(folder, 'CREATE TABLE stored AS SELECT 7 AS value');
    expect(await openAndQuery(folder, 'SELECT value FROM stored')).toEqual([{ value: 7 }]);
  });

  it('is created for its owner alone, with its parents, whatever the umask, and has no socket left in it once closed', async () => {
    const dataDir = join(folder, 'a', 'b');
    // Instead of making one, which takes long.
    beforeEngine(({ dataDir: path = '' }) => copyFolder(join(folder, 'postgres'), path));
    const umask = process.umask(0);
    try {
      const opened = await openEmbedded(dataDir);
      const modes = ['.', '.s.PGSQL.5432'].map(
        async (name) => (await stat(join(dataDir, name))).mode & 0o777,
      );
      expect(await Promise.all(modes)).toEqual([0o700, 0o600]);
      await query(opened, 'CREATE TABLE more AS SELECT 1 AS value');
      await expectClosed(dataDir);
      await opened.close();
      await expectClosed(dataDir);
    } finally {
      process.umask(umask);
    }
    // Not every tool can copy a socket.
    const entries = await readdir(dataDir, { withFileTypes: true });
    expect(entries.filter((entry) => entry.isSocket())).toEqual([]);
  });

  it('lets nobody else at the database, whatever the mode of the folder and of its files', async () => {
    await chmod(folder, 0o755);
    // As one of an earlier version may be.
    await chmod(join(folder, 'postgres'), 0o777);
    await (await openEmbedded(folder)).close();
    await expectClosed(folder);
  });

  it('may be deeper than the address of a socket has bytes, and leaves no link behind', async () => {
    // No more characters than there may be bytes.
    const dataDir = join(folder, '深'.repeat(20));
    await rename(join(folder, 'postgres'), join(await made(dataDir), 'postgres'));
    const temporary = await made(join(folder, 'temporary'));
    vi.stubEnv('TMPDIR', temporary);
    onTestFinished(() => void vi.unstubAllEnvs());
    const opened = await openEmbedded(dataDir);
    expect(await query(opened, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    const found = await findEmbedded(dataDir);
    expect(found).toBeDefined();
    await found?.close();
    await expect(openEmbedded(dataDir)).rejects.toThrow(`is in use by process ${process.pid}.`);
    await opened.close();
    expect(await findEmbedded(dataDir)).toBeUndefined();
    expect(await readdir(temporary)).toEqual([]);
  });

  it('cannot be deep where the temporary folder is as deep', async () => {
    const dataDir = join(folder, 'x'.repeat(90));
    const temporary = await made(join(folder, 'y'.repeat(90)));
    vi.stubEnv('TMPDIR', temporary);
    onTestFinished(() => void vi.unstubAllEnvs());
    const longest = process.platform === 'linux' ? 88 : 84;
    await expect(openEmbedded(dataDir)).rejects.toThrow(
      `DATA_DIR is ${JSON.stringify(dataDir)}, but takes a path of at most ${longest} bytes where that of the temporary folder, ${temporary}, is as long: set TMPDIR to another.`,
    );
    expect(await readdir(temporary)).toEqual([]);
  });

  it('of a later version is rejected, and let go of', async () => {
    const insert = `INSERT INTO _prisma_migrations (id, checksum, migration_name, finished_at) VALUES ('x', 'x', '2999_later', now())`;
    await openAndQuery(folder, insert);
    await expect(openDatabase({ DATABASE_URL: undefined, DATA_DIR: folder })).rejects.toThrow('2999_later');
    expect(await findEmbedded(folder)).toBeUndefined();
    expect(await openAndQuery(folder, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });

  it.each([
    ['a file', 'file'],
    ['below a file', 'file/data'],
    // Node's own mkdir would go on for ever there.
    ['in a folder in which nothing can be made', '/proc/none/data'],
    ['behind a link to nowhere', 'link/data'],
    ['called more than a name may have', 'x'.repeat(300)],
  ])('cannot be %s, which one line says', async (_, name) => {
    await writeFile(join(folder, 'file'), '');
    await symlink('nowhere', join(folder, 'link'));
    const dataDir = resolve(folder, name);
    await expect(openEmbedded(dataDir)).rejects.toThrow(
      `DATA_DIR is ${JSON.stringify(dataDir)}, but takes a folder that can be written to: `,
    );
  });
});

describe('a folder of another user', () => {
  const user = process.geteuid?.() ?? 0;
  /** Runs as another user, as far as this process says itself. */
  function become(id: number): void {
    vi.spyOn(process, 'geteuid').mockReturnValue(id);
    onTestFinished(() => void vi.restoreAllMocks());
  }

  it('is left as it is where it has a database, and whoever opens it hears whose it is', async () => {
    become(user + 1);
    const before = contents(folder);
    const reason = `DATA_DIR ${JSON.stringify(folder)} belongs to user ${user}, who could not use the files that user ${user + 1} would leave there`;
    const advice = `Run this as its owner, such as with sudo -u '#${user}', or give the folder away: chown -R ${user + 1} ${folder}`;
    await expect(openEmbedded(folder)).rejects.toThrow(`${reason}. ${advice}`);
    expect(await findProblem(folder)).toEqual({ reason, advice });
    expect(contents(folder)).toEqual(before);
  });

  it('gets no database from a command that root runs', async ({ skip }) => {
    skip(user !== 0, 'only root can give a folder to another user');
    const dataDir = await made(join(folder, 'empty'));
    await chown(dataDir, 65_534, 65_534);
    const place = { DATABASE_URL: undefined, DATA_DIR: dataDir };
    await expect(joinDatabase(place)).rejects.toThrow('belongs to user 65534');
    expect(await readdir(dataDir)).toEqual([]);
  });

  it('is told from a damaged one by files that its owner may not use', async () => {
    const denied = Object.assign(new Error('connect EACCES /data/.lock.3'), { code: 'EACCES' });
    const connecting = vi.spyOn(Socket.prototype, 'connect').mockImplementation(function (this: Socket) {
      process.nextTick(() => this.destroy(denied));
      return this;
    });
    onTestFinished(() => connecting.mockRestore());
    await writeFile(join(folder, '.lock.1'), '');
    await expect(openEmbedded(folder)).rejects.toThrow(
      `DATA_DIR is ${JSON.stringify(folder)}, but takes a folder that can be written to: connect EACCES /data/.lock.3. If another user, such as root, has left files there, run as root: chown -R ${user} ${folder}`,
    );
  });
});

describe('a feed', () => {
  it('is told what is announced on its channel, until it is closed', async () => {
    const opened = await openEmbedded(folder);
    const feed = await listenToEngine(opened);
    const told: Change[] = [];
    feed.subscribe((change) => told.push(change));
    for (const listener of opened.listeners) {
      listener('elsewhere', '1 User');
      for (const payload of ['23 DttDevice', '* User', '*', '', 'x User', '4x User', 'heartbeat of another'])
        listener('dovetail', payload);
    }
    expect(told).toEqual([
      { kind: 'user', userId: 23, table: 'DttDevice' },
      { kind: 'all', table: 'User' },
      ...Array(4).fill({ kind: 'all' }),
    ]);
    expect(feed.listening).toBe(true);
    expect(feed.reconnects).toBe(0);
    await feed.close();
    expect(feed.listening).toBe(false);
    expect(told.at(-1)).toEqual({ kind: 'all' });
    expect(opened.listeners.size).toBe(0);
    await opened.close();
  });
});

describe('a second process', () => {
  it('is rejected with a line that names the first, which is not harmed', async () => {
    const opened = await openEmbedded(folder);
    await query(opened, 'CREATE TABLE stored AS SELECT 7 AS value');
    // Several at once, since each of them looks at the lock.
    const rejected = await Promise.all(
      Array.from({ length: 2 }, () => startHolder(folder)).map(({ exit }) => exit),
    );
    for (const { stdout } of rejected) {
      expect(stdout).toBe(
        `DATA_DIR ${JSON.stringify(folder)} is in use by process ${process.pid}. Stop it, or set DATA_DIR to another folder.\n`,
      );
    }
    expect(await query(opened, 'SELECT value FROM stored')).toEqual([{ value: 7 }]);
    await opened.close();
    expect(await openAndQuery(folder, 'SELECT value FROM stored')).toEqual([{ value: 7 }]);
  });

  it('finds the engine of the first by its socket', async () => {
    expect(await findEmbedded(folder)).toBeUndefined();
    const holder = startHolder(folder, "await engine.exec('CREATE TABLE stored AS SELECT 7 AS value');");
    await written(holder, /open/);
    const { connection, close } = (await findEmbedded(folder)) ?? {};
    const client = new pg.Client(connection);
    await client.connect();
    expect((await client.query('SELECT value FROM stored')).rows).toEqual([{ value: 7 }]);
    await client.end();
    await close?.();
  });

  it('takes over what one that was killed left behind', async () => {
    const holder = startHolder(folder);
    await written(holder, /open/);
    holder.child.kill('SIGKILL');
    await holder.exit;
    const left = await readdir(folder);
    expect(left).toContain('.s.PGSQL.5432');
    expect(await openAndQuery(folder, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });

  it('opens the database of one that was killed while the engine wrote its own lock file', async () => {
    // The engine creates the file, and writes to it then.
    await writeFile(join(folder, 'postgres/postmaster.pid'), '');
    expect(await findProblem(folder)).toBeUndefined();
    expect(await openAndQuery(folder, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });
});

/** What the files of the folder hold, in short. */
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

  it('ends a gateway with exit 1 and a line, though nobody asks', async () => {
    const gateway = await serve({ DATA_DIR: folder, LOG_LEVEL: 'fatal' });
    await rm(folder, { recursive: true });
    const { code, stderr } = await gateway.exit;
    expect({ code, says: JSON.parse(stderr).msg }).toEqual({ code: 1, says: lost(folder) });
    // What it has not made it does not make again.
    await expect(stat(folder)).rejects.toThrow('ENOENT');
  });

  it.each(['asked for something', 'idle'])('is noticed by the engine that is %s', async (state) => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const opened = await openEmbedded(folder);
    const client = new pg.Client(opened.connection);
    client.on('error', () => {});
    await client.connect();
    vi.advanceTimersByTime(60_000);
    expect((await client.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
    const closed = new Promise((settle) => client.once('end', settle));
    await rm(folder, { recursive: true });
    if (state === 'idle') vi.advanceTimersByTime(1_000);
    else await expect(client.query('SELECT 1')).rejects.toThrow();
    expect((await opened.failure).message).toBe(lost(folder));
    await closed;
    await opened.close();
    await expect(stat(folder)).rejects.toThrow('ENOENT');
    // Nobody looks any more.
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is closed without a word to whatever is in its place', async () => {
    const engine = inject('engine');
    if (engine.kind !== 'embedded') throw new Error('there is no folder to copy');
    const opened = await openEmbedded(folder);
    await query(opened, 'CREATE TABLE unwritten AS SELECT 1 AS value');
    // All in one go, so that no timer comes between.
    rmSync(folder, { recursive: true });
    copyFolderSync(engine.template, folder);
    const found = contents(folder);
    await opened.close();
    expect(contents(folder)).toEqual(found);
    expect((await opened.failure).message).toBe(lost(folder));
  });

  it('leaves the database of the next alone, when it is closed before that is noticed', async () => {
    const first = startHolder(
      folder,
      `process.once('SIGTERM', () => close().then(() => failure).then((error) => {
         console.log(error.message);
         process.exit();
       }));`,
    );
    await written(first, /open/);
    // It sleeps meanwhile, so that it notices nothing before it is told to stop.
    first.child.kill('SIGSTOP');
    await rm(folder, { recursive: true });
    await made(folder);
    await copyTemplateTo(folder);
    const second = await openEmbedded(folder);
    first.child.kill('SIGTERM');
    first.child.kill('SIGCONT');
    expect((await first.exit).stdout).toContain(lost(folder));
    // Its socket and its lock are where they were.
    await expect(openEmbedded(folder)).rejects.toThrow(`is in use by process ${process.pid}.`);
    const found = await findEmbedded(folder);
    expect(found).toBeDefined();
    await found?.close();
    expect(await query(second, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    await second.close();
    expect(await openAndQuery(folder, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });
});

describe('a new database', () => {
  const thrown = { name: 'ErrnoError', errno: 51 };

  it('that does not fit is not left behind in parts, and is not called damaged', async () => {
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

  it('is not begun where there is no room for it', async () => {
    const dataDir = join(folder, 'new');
    const { bavail: _, ...others } = await fs.statfs(folder);
    const statfs = vi.spyOn(fs, 'statfs');
    onTestFinished(() => {
      statfs.mockRestore();
      syncBuiltinESMExports();
    });
    // The overload that gives numbers is the one that is called.
    statfs.mockResolvedValue({ ...others, bsize: 1024, bavail: 64 * 1024 - 1 } as StatsFs);
    syncBuiltinESMExports();
    await expect(openEmbedded(dataDir)).rejects.toThrow(
      `DATA_DIR is ${JSON.stringify(dataDir)}, but takes a folder that can be written to: a new database takes 64 MiB, and 63 MiB are free`,
    );
  });

  it('that cannot be unpacked is not left behind in parts, and is not called damaged', async () => {
    const dataDir = join(folder, 'new');
    const packed = join(folder, 'packed');
    await writeFile(packed, (await readFile(await newDatabaseFile())).subarray(0, -1));
    await expect(openEmbedded(dataDir, { packed })).rejects.toThrow(
      `${packed} cannot be unpacked, build or install it again: unexpected end of file`,
    );
    expect(await readdir(dataDir)).toEqual(['.lock.1']);
    const write = vi.spyOn(filesystem, 'writeSync').mockImplementation(() => {
      throw Object.assign(new Error('ENOSPC: no space left on device, write'), { syscall: 'write' });
    });
    onTestFinished(() => {
      write.mockRestore();
      syncBuiltinESMExports();
    });
    syncBuiltinESMExports();
    await expect(openEmbedded(dataDir, { packed: await newDatabaseFile() })).rejects.toThrow(
      `DATA_DIR is ${JSON.stringify(dataDir)}, but takes a folder that can be written to: ENOSPC: no space left on device, write`,
    );
    expect(await readdir(dataDir)).toEqual(['.lock.2']);
  });

  it.each([0, 1, 700, 'all'])(
    'is made anew or there as a whole after a process was killed that had written %s files of it',
    async (count) => {
      const dataDir = join(folder, 'new');
      const packed = await newDatabaseFile();
      const killed = startScript(
        `import fs from 'node:fs';
       import { syncBuiltinESMExports } from 'node:module';
import { Socket } from 'node:net';
       import { openEmbedded } from ${JSON.stringify(built.href)};
       const [, dataDir, packed, count] = process.argv;
       const kill = () => process.kill(process.pid, 'SIGKILL');
       const { openSync } = fs;
       let opened = 0;
       fs.openSync = (path, ...how) => {
         if (path.includes('postgres.new') && opened++ === Number(count)) kill();
         return openSync(path, ...how);
       };
       syncBuiltinESMExports();
       await openEmbedded(dataDir, { packed });
       console.log('open');
       kill();`,
        dataDir,
        packed,
        String(count),
      );
      expect((await killed.exit).stdout).toBe(count === 'all' ? 'open\n' : '');
      expect(await hasDatabase(dataDir)).toBe(count === 'all');
      const opened = await openEmbedded(dataDir, { packed });
      try {
        expect(await query(opened, 'SELECT count(*)::int FROM "User"')).toEqual([{ count: 0 }]);
      } finally {
        await opened.close();
      }
      expect((await readdir(dataDir)).filter((name) => !name.startsWith('.'))).toEqual(['postgres']);
    },
  );

  it('is what the build has packed, the same as one that is made and migrated', async () => {
    const dataDir = join(folder, 'new');
    const create = vi.spyOn(PGlite, 'create');
    onTestFinished(() => create.mockRestore());
    const database = await openDatabase({ DATABASE_URL: undefined, DATA_DIR: dataDir });
    await database.close();
    // Once to open it, where one that is made is opened twice.
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

  it('is told from one that there is, which is left as it was', async () => {
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
  it('is told as one by a line, and found without being opened', async () => {
    const temporary = await made(join(folder, 'temporary'));
    vi.stubEnv('TMPDIR', temporary);
    onTestFinished(() => void vi.unstubAllEnvs());
    expect(await findProblem(folder)).toBeUndefined();
    await truncate(join(folder, 'postgres', 'global', 'pg_control'), 100);
    const before = contents(folder);
    const line = new RegExp(`^The database in ${folder} is damaged: move it away and start again \\(.*\\)$`);
    expect(await findProblem(folder)).toEqual({
      reason: expect.stringMatching(line),
      advice: 'Move it away, and restore a copy or start with a new one.',
    });
    expect(contents(folder)).toEqual(before);
    await expect(openEmbedded(folder)).rejects.toThrow(line);
    expect(await readdir(temporary)).toEqual([]);
    expect(await findEmbedded(folder)).toBeUndefined();
  });

  it('is none that cannot be copied to look at it', async () => {
    const path = join(folder, 'postgres', 'pg_hba.conf');
    const reason = `EACCES: permission denied, copyfile '${path}'`;
    vi.spyOn(fs, 'cp').mockRejectedValueOnce(Object.assign(new Error(reason), { code: 'EACCES' }));
    syncBuiltinESMExports();
    onTestFinished(() => {
      vi.restoreAllMocks();
      syncBuiltinESMExports();
    });
    expect(await findProblem(folder)).toEqual({
      reason: `The database in ${folder} cannot be copied to look at it: ${reason}`,
      advice: `If another user, such as root, has left files there, run as root: chown -R ${process.geteuid?.()} ${folder}`,
    });
    vi.spyOn(fs, 'cp').mockRejectedValueOnce(new Error('ENOSPC: no space left on device'));
    syncBuiltinESMExports();
    expect((await findProblem(folder))?.advice).toBe(
      `Try again, and make room for a copy in ${tmpdir()} (TMPDIR).`,
    );
  });

  it('is none that another version of PostgreSQL has made', async () => {
    await writeFile(join(folder, 'postgres', 'PG_VERSION'), '99\n');
    await expect(openEmbedded(folder)).rejects.toThrow(
      `The database in ${folder} is of another version of PostgreSQL than this release has: open it with the release that made it`,
    );
    expect(await readFile(join(folder, 'postgres', 'PG_VERSION'), 'utf8')).toBe('99\n');
  });

  it.each(['No space left on device', 'Permission denied', 'Read-only file system'])(
    'is none where there is something in the way of writing: %s',
    async (obstacle) => {
      beforeEngine(async ({ onStderr }) => {
        // What ends the engine counts, whatever it says besides.
        for (const line of ['LOG:  begins', `PANIC:  could not write: ${obstacle}`, 'LOG:  ends'])
          onStderr?.(line);
        throw new Error('exit 1');
      });
      await expect(openEmbedded(folder)).rejects.toThrow(
        `DATA_DIR is ${JSON.stringify(folder)}, but takes a folder that can be written to: PANIC:  could not write: ${obstacle}`,
      );
    },
  );
});

describe('an engine that breaks off', () => {
  it('fails, instead of keeping its process busy for ever', async () => {
    const opened = await openEmbedded(folder);
    // PGlite has no programs to start, and says so by an exception.
    await expect(query(opened, "COPY (SELECT 1) TO PROGRAM 'cat'")).rejects.toThrow();
    expect((await opened.failure).message).toMatch(/^the engine broke off: /);
    await expect(query(opened, 'SELECT 1')).rejects.toThrow();
    await opened.close();
  });
});

describe('what was acknowledged', () => {
  it('is there after a process was killed while it wrote', async () => {
    const rounds = 3;
    // Counts what it finds, and then writes row after row, and says so, until it is killed.
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
