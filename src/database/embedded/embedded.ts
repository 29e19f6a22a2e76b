/** The embedded PostgreSQL: its data is in DATA_DIR, and it listens on a Unix socket in that folder. */

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { access, chmod, cp, mkdtemp, readdir, rename, rm, statfs, symlink } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import type pg from 'pg';
import { errorText, SetupError } from '../../errors.ts';
import { makeFolder } from './folder.ts';
import { lockFolder } from './folderLock.ts';
import {
  adviceForDenied,
  assertOwnDatabase,
  type DatabaseProblem,
  engineFolder,
  findForeignOwner,
} from './owner.ts';
import type { NotificationListener } from './replies.ts';
import { ownNamePrefix, type SocketOptions, serveEngine } from './server.ts';
import { compileWithBaselineOnly } from './webAssembly.ts';

export interface EmbeddedPostgres {
  /** The settings with which `pg`, Prisma or `psql` connect to the engine, from this process or another. */
  readonly connection: pg.ClientConfig;
  readonly engine: PGlite;
  /** Called for each notification, on the channels that the engine was told to `LISTEN` to. */
  readonly listeners: Set<NotificationListener>;
  /** Resolves when the engine has failed. It cannot be used any more then. */
  readonly failure: Promise<Error>;
  close(): Promise<void>;
}

/** By default PGlite reserves 128 MB for its page cache. The operating system caches the same pages, so less is enough. */
const startParams = [...PGlite.defaultStartParams, '-c', 'shared_buffers=16MB'];

/** The name of the socket file that PostgreSQL clients expect. */
const socketName = '.s.PGSQL.5432';

export interface EmbeddedOptions extends Pick<SocketOptions, 'silenceLimit'> {
  /** The file from which a new database is unpacked (`packed.ts`). If it does not exist, the engine creates the database. */
  readonly packed?: string;
}

/**
 * Opens the database of the folder, creating it if there is none.
 * @throws {SetupError} when another process has it open, it belongs to another user, or it cannot be a folder.
 */
export async function openEmbedded(
  dataDir: string,
  { packed, ...options }: EmbeddedOptions = {},
): Promise<EmbeddedPostgres> {
  await makeFolder(resolve(dataDir)).catch((error) => {
    throw unusable(dataDir, error);
  });
  await assertOwnDatabase(dataDir);
  // Functions that close what was opened, to be called in reverse order.
  const opened: (() => unknown)[] = [];
  const close = async () => {
    for (const undo of opened.reverse()) await undo();
  };
  try {
    const folder = await reachableFolder(resolve(dataDir));
    opened.push(folder.release);
    const claimed = await lockFolder(folder.path).catch((error) => {
      throw unusable(dataDir, error);
    });
    if ('holder' in claimed) {
      throw new SetupError(
        `DATA_DIR ${JSON.stringify(dataDir)} is in use by ${claimed.holder}. Stop it, or set DATA_DIR to another folder.`,
      );
    }
    const { isHeld, release } = claimed;
    opened.push(release);
    const engine = await openEngine(dataDir, join(folder.path, engineFolder), packed);
    const socket = join(folder.path, socketName);
    await rm(socket, { force: true });
    const listeners = new Set<NotificationListener>();
    const tell: NotificationListener = (channel, payload) => {
      for (const listener of listeners) listener(channel, payload);
    };
    const ownName = ownNamePrefix + randomUUID();
    const findObstacle = () => (isHeld() ? undefined : lost(dataDir));
    const server = serveEngine(engine, tell, { ...options, ownName, findObstacle });
    // Closing an engine that has failed would never finish, or would write to a folder that another process has opened.
    opened.push(() => server.hasFailed() || engine.close());
    server.listen(socket);
    await once(server, 'listening');
    const watch = setInterval(server.check, lockInterval).unref();
    opened.push(() => {
      clearInterval(watch);
      server.check();
      // Closing the server removes the socket file, which may belong to another process.
      if (isHeld()) server.close();
      else server.unref();
      server.closeConnections();
    });
    await chmod(socket, 0o600);
    const connection = { ...connectionTo(folder.path), application_name: ownName };
    return { connection, engine, listeners, failure: server.failure, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** What is wrong with the database of the folder, if anything is. Opens a copy, since opening it would change it. */
export async function findProblem(dataDir: string): Promise<DatabaseProblem | undefined> {
  const foreign = await findForeignOwner(dataDir);
  if (foreign) return foreign;
  const copy = await mkdtemp(join(tmpdir(), 'dovetail-'));
  try {
    const path = join(copy, engineFolder);
    const failure = await cp(join(dataDir, engineFolder), path, { recursive: true }).then(
      () => undefined,
      (error: unknown) => uncopied(dataDir, error),
    );
    if (failure) return failure;
    const engine = await openEngine(dataDir, path);
    await engine.close();
    return undefined;
  } catch (error) {
    const advice = 'Move it away, and restore a copy or start with a new one.';
    return { reason: errorText(error), advice };
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}

/** A database that cannot be copied may be well: there is no room for the copy, or another user has left files in it. */
function uncopied(dataDir: string, error: unknown): DatabaseProblem {
  return {
    reason: `The database in ${dataDir} cannot be copied to look at it: ${errorText(error)}`,
    advice: adviceForDenied(dataDir, error) ?? `Try again, and make room for a copy in ${tmpdir()} (TMPDIR).`,
  };
}

/** How often, in milliseconds, an idle engine checks whether its folder is still there. */
const lockInterval = 1_000;

function lost(dataDir: string): SetupError {
  return new SetupError(
    `DATA_DIR ${JSON.stringify(dataDir)} was removed or replaced while it was open. Nothing more is written to it.`,
  );
}

/**
 * Opens the engine, and creates its database if the folder is empty.
 * @throws {SetupError} when its files are damaged or of another version, or cannot be written.
 */
async function openEngine(dataDir: string, path: string, packed?: string): Promise<PGlite> {
  let isNew: boolean;
  try {
    // PGlite leaves the modes of its files to the umask. The mode of the folder keeps other users out.
    await makeFolder(path);
    await chmod(path, 0o700);
    isNew = (await readdir(path)).length === 0;
    if (isNew) await assertRoom(path);
  } catch (error) {
    throw unusable(dataDir, error);
  }
  const said: string[] = [];
  try {
    if (isNew) await makeDatabase(path, packed, said);
    return await startEngine(path, said);
  } catch (error) {
    // An incomplete database would fail the next start.
    if (isNew) await rm(path, { recursive: true, force: true }).catch(() => {});
    if (error instanceof SetupError) throw error;
    const last = said.findLast((line) => /FATAL|PANIC/.test(line));
    const obstacle = obstacleOf(error) ?? last;
    if (isSystemError(error)) throw unusable(dataDir, error);
    if (obstacle && /No space left|Disk quota|Permission denied|Read-only file system/.test(obstacle))
      throw unusable(dataDir, new Error(obstacle));
    if (obstacle && /incompatible with server/.test(obstacle))
      throw new SetupError(
        `The database in ${dataDir} is of another version of PostgreSQL than this release has: open it with the release that made it`,
        { cause: error },
      );
    throw new SetupError(damaged(dataDir, last ?? errorText(error)), {
      cause: error,
    });
  }
}

/** Whether an error comes from Node's file system, which is used before the engine starts, and not from the engine. */
const isSystemError = (error: unknown) => error instanceof Error && 'syscall' in error;

/**
 * Creates a database in a temporary folder beside its own, and then renames that folder. So a process that is killed
 * meanwhile leaves nothing behind that looks like a database.
 */
async function makeDatabase(path: string, packed: string | undefined, said: string[]): Promise<void> {
  const draft = `${path}.new`;
  await rm(draft, { recursive: true, force: true });
  await makeFolder(draft);
  try {
    if (packed !== undefined && (await isThere(packed))) {
      const { unpack } = await import('./packed.ts');
      await unpack(packed, draft);
    } else await (await startEngine(draft, said)).close();
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { recursive: true, force: true }).catch(() => {});
    throw error;
  }
}

const isThere = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

/** @param said receives the log lines of the engine. */
async function startEngine(path: string, said: string[]): Promise<PGlite> {
  compileWithBaselineOnly();
  // The engine's own lock file. A killed engine leaves it behind, and no engine would start if it was still empty. The lock
  // of the folder already ensures that only this process uses it.
  await rm(join(path, 'postmaster.pid'), { force: true });
  const engine = await PGlite.create({
    dataDir: path,
    startParams,
    onStderr: (line) => said.push(line) > 0,
  });
  // The engine lacks the libraries for encoding conversions. Without these rows it reports that, and with them it crashes.
  await engine.exec('DELETE FROM pg_catalog.pg_conversion');
  return engine;
}

/** The disk space for a new database and its first writes, in bytes. */
const roomForNew = 64 * 1024 ** 2;

/** Fails if there is no space for a new database. The engine would notice only after seconds, with a poor message. */
async function assertRoom(path: string): Promise<void> {
  const { bavail, bsize, blocks } = await statfs(path);
  // Some file systems do not report their size.
  if (blocks === 0 || bavail * bsize >= roomForNew) return;
  const [takes, free] = [roomForNew, bavail * bsize].map((bytes) => Math.floor(bytes / 1024 ** 2));
  throw new Error(`a new database takes ${takes} MiB, and ${free} MiB are free`);
}

/** Emscripten's file system throws objects that are not Errors. Their `errno` is an error number of WASI. */
const obstacles: Readonly<Record<number, string>> = {
  2: 'Permission denied',
  19: 'Disk quota exceeded',
  51: 'No space left on device',
  63: 'Permission denied',
  69: 'Read-only file system',
};

function obstacleOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('errno' in error)) return undefined;
  return typeof error.errno === 'number' ? obstacles[error.errno] : undefined;
}

const damaged = (dataDir: string, reason: string) =>
  `The database in ${dataDir} is damaged: move it away and start again (${reason.split('\n')[0]})`;

/** Whether there is a database in the folder, open or not. */
export function hasDatabase(dataDir: string): Promise<boolean> {
  return readdir(join(dataDir, engineFolder)).then(
    (files) => files.length > 0,
    (error: NodeJS.ErrnoException) => error.code !== 'ENOENT' && error.code !== 'ENOTDIR',
  );
}

/** How to connect to the engine of the process that has the folder open; undefined if none has. */
export async function findEmbedded(dataDir: string) {
  const folder = await reachableFolder(resolve(dataDir));
  if (await isListening(join(folder.path, socketName)))
    return { connection: connectionTo(folder.path), close: folder.release };
  await folder.release();
  return undefined;
}

/** PGlite has one user and one database, and needs no password: the mode of the folder keeps other users out. */
function connectionTo(host: string): pg.ClientConfig {
  return { host, user: 'postgres', database: 'postgres' };
}

/** The address of a socket has at most 107 bytes on Linux (unix(7)) and 103 elsewhere. The longest name in the folder takes 19. */
const longestFolder = (process.platform === 'linux' ? 107 : 103) - 19;

/**
 * The folder by a path that is short enough for the address of a socket in it. If its own path is too long, that is a
 * symbolic link in the temporary folder.
 */
async function reachableFolder(path: string): Promise<{ path: string; release(): Promise<void> }> {
  if (Buffer.byteLength(path) <= longestFolder) return { path, release: async () => {} };
  const parent = await mkdtemp(join(tmpdir(), 'dovetail-'));
  if (Buffer.byteLength(join(parent, 'data')) > longestFolder) {
    await rm(parent, { recursive: true, force: true });
    throw new SetupError(
      `DATA_DIR is ${JSON.stringify(path)}, but takes a path of at most ${longestFolder} bytes where that of the temporary folder, ${tmpdir()}, is as long: set TMPDIR to another.`,
    );
  }
  await symlink(path, join(parent, 'data'));
  return { path: join(parent, 'data'), release: () => rm(parent, { recursive: true, force: true }) };
}

/** Whether a process listens on the socket. */
function isListening(path: string): Promise<boolean> {
  return new Promise((settle) => {
    const socket = connect(path, () => {
      socket.destroy();
      settle(true);
    });
    socket.once('error', () => settle(false));
  });
}

function unusable(dataDir: string, error: unknown): SetupError {
  const reason = `DATA_DIR is ${JSON.stringify(dataDir)}, but takes a folder that can be written to: ${errorText(error)}`;
  const advice = adviceForDenied(dataDir, error);
  return new SetupError(advice === undefined ? reason : `${reason}. ${advice}`, { cause: error });
}
