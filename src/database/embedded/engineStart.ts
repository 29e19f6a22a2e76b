/** Opens PGlite on the folder of a database, and creates the database if there is none. */

import { existsSync } from 'node:fs';
import { chmod, mkdir, readdir, rename, rm, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { PGlite } from '@electric-sql/pglite';
import { errorText, SetupError } from '../../errors.ts';
import { adviceForDenied } from './owner.ts';

/** By default PGlite reserves 128 MB for its page cache. The operating system caches the same pages, so less is enough. */
const startParams = [...PGlite.defaultStartParams, '-c', 'shared_buffers=16MB'];

/**
 * Opens the engine, and creates its database if the folder is empty.
 * @throws {SetupError} when its files are damaged or of another version, or cannot be written.
 */
export async function openEngine(dataDir: string, path: string, packed?: string): Promise<PGlite> {
  let isNew: boolean;
  try {
    // PGlite leaves the modes of its files to the umask. The mode of the folder keeps other users out.
    await makeFolder(path);
    await chmod(path, 0o700);
    isNew = (await readdir(path)).length === 0;
    if (isNew) await assertRoom(path);
  } catch (error) {
    throw unusableFolder(dataDir, error);
  }
  const said: string[] = [];
  try {
    if (isNew) await makeDatabase(path, packed, said);
    return await startEngine(path, said);
  } catch (error) {
    // An incomplete database would fail the next start.
    for (const left of isNew ? [path, draftOf(path)] : [])
      await rm(left, { recursive: true, force: true }).catch(() => {});
    if (error instanceof SetupError) throw error;
    const last = said.findLast((line) => /FATAL|PANIC/.test(line));
    const obstacle = obstacleOf(error) ?? last;
    if (isSystemError(error)) throw unusableFolder(dataDir, error);
    if (obstacle && /No space left|Disk quota|Permission denied|Read-only file system/.test(obstacle))
      throw unusableFolder(dataDir, new Error(obstacle));
    if (obstacle && /incompatible with server/.test(obstacle))
      throw new SetupError(
        `The database in ${dataDir} is of another version of PostgreSQL than this release has: open it with the release that made it`,
        { cause: error },
      );
    const [reason] = (last ?? errorText(error)).split('\n');
    throw new SetupError(`The database in ${dataDir} is damaged: move it away and start again (${reason})`, {
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
  const draft = draftOf(path);
  await rm(draft, { recursive: true, force: true });
  await makeFolder(draft);
  if (packed !== undefined && existsSync(packed)) {
    const { unpack } = await import('./packed.ts');
    await unpack(packed, draft);
  } else await (await startEngine(draft, said)).close();
  await rename(draft, path);
}

const draftOf = (path: string) => `${path}.new`;

/** @param said receives the log lines of the engine. */
async function startEngine(path: string, said: string[]): Promise<PGlite> {
  compileWithBaselineOnly();
  // The engine's own lock file. A killed engine leaves it behind, and no engine would start if it was still empty. The lock
  // of the folder already ensures that only this process uses it.
  await rm(join(path, 'postmaster.pid'), { force: true });
  return PGlite.create({ dataDir: path, startParams, onStderr: (line) => said.push(line) > 0 });
}

/**
 * Has V8 compile WebAssembly with its baseline compiler alone, in this process.
 *
 * V8 would compile functions that are called often a second time, with its optimizing compiler. Of the engine that is above
 * all its SQL parser, one function of 100 KB: on Node 24 this takes 600 MiB and seconds of processor time at each start.
 * Without optimized code the process takes 40 MiB less at rest. Statements over few rows take as long as before, and
 * statements over 100,000 rows up to 1.8 times as long.
 */
function compileWithBaselineOnly(): void {
  // Either alone has no effect, or that V8 optimizes every function.
  setFlagsFromString('--no-wasm-tier-up');
  setFlagsFromString('--no-wasm-dynamic-tiering');
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

/** The error for a folder that cannot be used. */
export function unusableFolder(dataDir: string, error: unknown): SetupError {
  const reason = `DATA_DIR is ${JSON.stringify(dataDir)}, but takes a folder that can be written to: ${errorText(error)}`;
  const advice = adviceForDenied(dataDir, error);
  return new SetupError(advice === undefined ? reason : `${reason}. ${advice}`, { cause: error });
}

/**
 * Creates the folder, and its parents, with mode 0700. Node's `mkdir` with `recursive` retries for ever in a folder in which
 * nothing can be created, such as /proc, and keeps the process from ending.
 * @param path an absolute path.
 */
export async function makeFolder(path: string): Promise<void> {
  if (await isFolder(path)) return;
  if (dirname(path) !== path) await makeFolder(dirname(path));
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have been faster.
    if (!(await isFolder(path))) throw error;
  }
}

function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
