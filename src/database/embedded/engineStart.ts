/** Opens PGlite on the folder of a database, and creates the database if there is none. */

import { existsSync } from 'node:fs';
import { chmod, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { PGlite } from '@electric-sql/pglite';
import { errorText, SetupError } from '../../errors.ts';
import { unpack } from './newDatabase.ts';
import { unusableFolder } from './owner.ts';

/** By default PGlite reserves 128 MB for its page cache. The operating system caches the same pages, so less is enough. */
const startParams = [...PGlite.defaultStartParams, '-c', 'shared_buffers=16MB'];

/**
 * Opens the engine, and creates its database if the folder is empty.
 * @throws {SetupError} when its files are damaged or of another version, or cannot be written.
 */
export async function openEngine(dataDir: string, path: string, packed?: string): Promise<PGlite> {
  const draft = `${path}.new`;
  const said: string[] = [];
  let isNew = false;
  try {
    // PGlite leaves the modes of its files to the umask. The mode of the folder keeps other users out.
    await mkdir(path, { recursive: true, mode: 0o700 });
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

/** @param said receives the log lines of the engine. */
async function startEngine(path: string, said: string[]): Promise<PGlite> {
  compileWithBaselineOnly();
  // The engine's own lock file. A killed engine leaves it behind, and no engine would start if it was still empty. The lock
  // of the folder already ensures that only this process uses it.
  await rm(join(path, 'postmaster.pid'), { force: true });
  return PGlite.create({ dataDir: path, startParams, onStderr: (line) => said.push(line) > 0 });
}

/**
 * Makes V8 compile WebAssembly only with its baseline compiler, in this process.
 *
 * V8 would compile frequent functions a second time, with its optimizing compiler. In the engine that is mainly its SQL parser, one
 * function of 100 KB: on Node 24 this takes 600 MiB and seconds of processor time at each start.
 * Without optimized code the process takes 40 MiB less at rest. Statements over few rows take as long as before, and
 * statements over 100,000 rows up to 1.8 times as long.
 */
function compileWithBaselineOnly(): void {
  // One flag alone has no effect, or makes V8 optimize every function.
  setFlagsFromString('--no-wasm-tier-up');
  setFlagsFromString('--no-wasm-dynamic-tiering');
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
  const last = said.findLast((line) => /FATAL|PANIC/.test(line)) ?? errorText(error);
  const obstacle = obstacles[errno] ?? last;
  if (/No space left|Disk quota|Permission denied|Read-only file system/.test(obstacle))
    return unusableFolder(dataDir, new Error(obstacle));
  const [line] = last.split('\n');
  return new SetupError(
    /incompatible with server/.test(last)
      ? `The database in ${dataDir} is of another version of PostgreSQL than this release has: open it with the release that made it`
      : `The database in ${dataDir} is damaged: move it away and start again (${line})`,
    { cause: error },
  );
}
