/**
 * The embedded PostgreSQL: PGlite on a folder, for a gateway without a database server.
 *
 * Promises that only one process at a time has the folder open, that a killed process loses no acknowledged write, and that a
 * failed engine is not used again. The gateway and its commands connect through a Unix socket in the folder and take turns
 * (`server.ts`). All other clients are rejected, since PGlite has only one session.
 *
 * To replace it: set DATABASE_URL to a PostgreSQL server. Only this folder and `database.ts` know the difference.
 */

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { PGlite } from '@electric-sql/pglite';
import type pg from 'pg';
import { errorText, SetupError, systemCodeOf, UnusableDatabase } from '../../errors.ts';
import { closeAll } from '../closing.ts';
import {
  assertOwn,
  engineFolder,
  folderOf,
  isListening,
  lockFolder,
  makeFolder,
  unusableFolder,
} from './folder.ts';
import { unpack } from './newDatabase.ts';
import { commandName, connectionTo, type NotificationListener, serveEngine } from './server.ts';

export type EmbeddedPostgres = Awaited<ReturnType<typeof openEmbedded>>;

/** The name of the socket file that PostgreSQL clients expect. */
const socketName = '.s.PGSQL.5432';

/**
 * Opens the database of the folder, creating it if there is none.
 * @param packed the file from which a new database is unpacked (`newDatabase.ts`). If it does not exist, the engine creates one.
 * @throws {FolderInUse} when another process has it open. {SetupError} when it belongs to another user, or cannot be a folder.
 */
export async function openEmbedded(dataDir: string, packed?: string) {
  const folder = folderOf(dataDir);
  await makeFolder(folder).catch((error) => {
    throw unusableFolder(folder, error);
  });
  await assertOwn(folder);
  const lock = await lockFolder(folder);
  const engine = await openEngine(folder, join(folder, engineFolder), packed).catch(async (error) => {
    await lock.release();
    throw error;
  });
  const listeners = new Set<NotificationListener>();
  // A name of its own: the client of a gateway whose folder was replaced must not use the engine of another gateway.
  const ownName = `${commandName}-${randomUUID()}`;
  const server = serveEngine(
    engine,
    [ownName, commandName],
    (...notification) => {
      for (const listener of listeners) listener(...notification);
    },
    lock.findLoss,
  );
  const failure = once(server.failed, 'abort').then((): Error => server.failed.reason);
  const socket = join(folder, socketName);
  await rm(socket, { force: true });
  server.listen(socket);
  await once(server, 'listening');
  await chmod(socket, 0o600);
  return {
    /** The settings with which `pg` or Prisma connect to the engine from this process. */
    connection: connectionTo(folder, ownName),
    /** Called for each notification, on the channels that the engine was told to `LISTEN` to. */
    listeners,
    /** Resolves when the engine has failed. It cannot be used any more then. */
    failure,
    async close(): Promise<void> {
      server.stop();
      // Closing an engine that has failed would never finish, or would write to a folder that another process has opened.
      const isUsable = !server.failed.aborted && lock.isHeld();
      await closeAll([...(isUsable ? [engine] : []), { close: lock.release }]);
    },
  };
}

/** Whether there is a database in the folder, open or not. */
export function hasDatabase(dataDir: string): Promise<boolean> {
  return readdir(join(dataDir, engineFolder)).then(
    (files) => files.length > 0,
    (error) => !['ENOENT', 'ENOTDIR'].includes(systemCodeOf(error) ?? ''),
  );
}

/** How to connect to the engine of the process that has the folder open; undefined if none has. */
export async function findEmbedded(dataDir: string): Promise<pg.ClientConfig | undefined> {
  const folder = folderOf(dataDir);
  const isOpen = await isListening(join(folder, socketName)).catch(() => false);
  return isOpen ? connectionTo(folder, commandName) : undefined;
}

/** By default PGlite reserves 128 MB for its page cache. The operating system caches the same pages, so less is enough. */
const startParams = [...PGlite.defaultStartParams, '-c', 'shared_buffers=16MB'];

/**
 * Opens the engine, and creates its database if the folder is empty.
 * @throws {SetupError} when its files are damaged or of another version, or cannot be written.
 */
async function openEngine(dataDir: string, path: string, packed?: string): Promise<PGlite> {
  const draft = `${path}.new`;
  const said: string[] = [];
  let isNew = false;
  try {
    // PGlite leaves the modes of its files to the umask. The mode of the folder keeps other users out.
    await makeFolder(path);
    await chmod(path, 0o700);
    isNew = (await readdir(path)).length === 0;
    if (isNew) {
      // In a folder beside its own, so that a process that is killed leaves nothing behind that looks like a database.
      await rm(draft, { recursive: true, force: true });
      await mkdir(draft, { mode: 0o700 });
      if (packed !== undefined && existsSync(packed)) await unpack(packed, draft);
      else await (await startEngine(draft, said)).close();
      await rename(draft, path);
    }
    return await startEngine(path, said);
  } catch (error) {
    // An incomplete database would fail the next start.
    for (const left of isNew ? [path, draft] : [])
      await rm(left, { recursive: true, force: true }).catch(() => {});
    throw error instanceof SetupError ? error : startErrorOf(dataDir, error, said);
  }
}

/**
 * Makes V8 compile WebAssembly only with its baseline compiler, in this process.
 *
 * V8 would compile frequent functions a second time, with its optimizing compiler. In the engine that is mainly its SQL parser, one
 * function of 100 KB: on Node 24 this takes 600 MiB and seconds of processor time at each start.
 * Without optimized code the process takes 40 MiB less at rest. Statements over few rows take as long as before, and
 * statements over 100,000 rows up to 1.8 times as long. One flag alone has no effect, or makes V8 optimize every function.
 */
const baselineOnly = ['--no-wasm-tier-up', '--no-wasm-dynamic-tiering'];

/** @param said receives the log lines of the engine. */
async function startEngine(path: string, said: string[]): Promise<PGlite> {
  baselineOnly.forEach(setFlagsFromString);
  // The engine's own lock file. A killed engine leaves it behind, and no engine would start if it was still empty. The lock
  // of the folder already ensures that only this process uses it.
  await rm(join(path, 'postmaster.pid'), { force: true });
  return PGlite.create({ dataDir: path, startParams, onStderr: (line) => said.push(line) > 0 });
}

/** Emscripten's file system throws objects that are not Errors. Their `errno` is an error number of WASI. */
const obstacles: Readonly<Record<number, string>> = {
  2: 'Permission denied',
  19: 'Disk quota exceeded',
  51: 'No space left on device',
  63: 'Permission denied',
  69: 'Read-only file system',
};

/** Why the engine could not be opened, from an error and the log lines of the engine. */
function startErrorOf(dataDir: string, error: unknown, said: readonly string[]): SetupError {
  // An error of Node's file system, which is used before the engine starts.
  if (error instanceof Error && 'syscall' in error) return unusableFolder(dataDir, error);
  const { errno } = Object(error);
  const last = obstacles[errno] ?? said.findLast((line) => /FATAL|PANIC/.test(line)) ?? errorText(error);
  const [line] = last.split('\n');
  return new UnusableDatabase(`The database in ${dataDir} cannot be opened: ${line}`, { cause: error });
}
