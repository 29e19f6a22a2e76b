/**
 * The owner and the lock of a database folder. PGlite does not lock it, and two processes that open the same folder destroy the
 * database. Only the owner may open it, as with the data directory of a PostgreSQL server: root could write there as well, but the
 * owner could not read the files that root leaves behind.
 */

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { chmod, link, mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import { errorText, SetupError, systemCodeOf, UnusableDatabase } from '../../errors.ts';

/** Another process has the folder open. */
export class FolderInUse extends SetupError {}

/** The address of a socket has at most 107 bytes on Linux (unix(7)) and 103 elsewhere. The longest name in the folder takes 19. */
const longestFolder = (process.platform === 'linux' ? 107 : 103) - 19;

/** The whole path of DATA_DIR. @throws {SetupError} when it cannot be that of a database. */
export function folderOf(dataDir: string): string {
  const folder = resolve(dataDir);
  if (Buffer.byteLength(folder) > longestFolder)
    throw new SetupError(
      `DATA_DIR is ${JSON.stringify(folder)}, but takes a path of at most ${longestFolder} bytes, since there is a socket in it.`,
    );
  return folder;
}

/**
 * Creates a folder for this user alone, and those above it, where they are missing. The recursive `mkdir` of Node 20 never returns
 * below a folder that exists and takes none, such as /proc.
 */
export async function makeFolder(path: string): Promise<void> {
  if (isFolder(path)) return;
  const above = dirname(path);
  if (above !== path) await makeFolder(above);
  await mkdir(path, { mode: 0o700 }).catch((error: unknown) => {
    // Another process may have been faster.
    if (!isFolder(path)) throw error;
  });
}

const isFolder = (path: string) => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

/**
 * Locks the folder for this process.
 *
 * The lock is a listening socket, which stops listening when its process ends. Its file stays, though, and removing an old file is
 * a race: it may have become the lock of a faster process meanwhile. So the lock files are numbered. The one with the highest
 * number is the lock and is never removed, and only one process can link the next number.
 * @throws {FolderInUse} when another process holds the lock. {SetupError} when the folder cannot be used.
 */
export async function lockFolder(folder: string) {
  const draft = join(folder, `.lock.new-${randomBytes(4).toString('hex')}`);
  const server = createServer((socket) => socket.destroy()).unref();
  try {
    server.listen(draft);
    await once(server, 'listening');
    await chmod(draft, 0o600);
    // As long as the socket is bound, no other file has its inode number.
    const { dev, ino } = statSync(draft);
    const lock = await linkHighest(folder, draft);
    await rm(draft, { force: true });
    const isHeld = () => {
      const found = statSync(lock, { throwIfNoEntry: false });
      return found?.ino === ino && found.dev === dev;
    };
    return {
      /** Whether this process still holds the lock: the folder may have been removed, and created again by another process. */
      isHeld,
      /** The error of a folder that this process no longer holds. */
      findLoss: () =>
        isHeld()
          ? undefined
          : new SetupError(
              `DATA_DIR ${JSON.stringify(folder)} was removed or replaced while it was open. Nothing more is written to it.`,
            ),
      async release(): Promise<void> {
        // An empty file means the same as a socket that nobody listens on, and can be copied with the folder.
        if (isHeld())
          await writeFile(draft, '', { mode: 0o600 })
            .then(() => rename(draft, lock))
            .catch(() => {});
        server.close();
      },
    };
  } catch (error) {
    server.close();
    throw error instanceof FolderInUse ? error : unusableFolder(folder, error);
  }
}

/** Links the socket under a number that is higher than all others, if nobody listens on the highest, and returns its path. */
async function linkHighest(folder: string, draft: string): Promise<string> {
  for (;;) {
    const highest = Math.max(0, ...(await locksIn(folder)));
    if (await isListening(lockPath(folder, highest)))
      throw new FolderInUse(
        `DATA_DIR ${JSON.stringify(folder)} is in use by another process. Stop it, or set DATA_DIR to another folder.`,
      );
    const lock = lockPath(folder, highest + 1);
    try {
      await link(draft, lock);
    } catch (error) {
      // Another process was faster.
      if (systemCodeOf(error) === 'EEXIST') continue;
      throw error;
    }
    const numbers = await locksIn(folder);
    const isHighest = numbers.every((number) => number <= highest + 1);
    // The number may have been free because another process had taken a higher one and removed it.
    for (const number of isHighest ? numbers.filter((each) => each <= highest) : [highest + 1])
      await rm(lockPath(folder, number), { force: true });
    if (isHighest) return lock;
  }
}

const lockPath = (folder: string, number: number) => join(folder, `.lock.${number}`);

async function locksIn(folder: string): Promise<number[]> {
  const names = await readdir(folder);
  return names.flatMap((name) => /^\.lock\.(\d+)$/.exec(name)?.[1] ?? []).map(Number);
}

/** The error codes if no process listens: for an old socket, for no file, and for the empty file in its place. */
const nobody = ['ECONNREFUSED', 'ENOENT', 'ENOTSOCK'];

/**
 * Whether a process listens on the socket.
 * @throws when this user may not connect to it. That says nothing about a process: another user may have left the file.
 */
export async function isListening(path: string): Promise<boolean> {
  const socket = connect(path);
  try {
    await once(socket, 'connect');
    return true;
  } catch (error) {
    const code = systemCodeOf(error) ?? '';
    if (code === 'EACCES' || code === 'EPERM') throw error;
    return !nobody.includes(code);
  } finally {
    socket.destroy();
  }
}

/** The name of the folder, in DATA_DIR, that has the files of the engine. */
export const engineFolder = 'postgres';

/**
 * Makes sure that this process may use the database of a folder. Any user may create one there: in a container that runs as root,
 * DATA_DIR is often a folder of a user of the host.
 * @throws {SetupError} when it belongs to another user.
 */
export async function assertOwn(dataDir: string): Promise<void> {
  // Undefined on Windows.
  const user = process.geteuid?.();
  // Without an owner, if there is no such folder, or it cannot be inspected: then opening it reports the error.
  const { uid: owner } = await stat(join(dataDir, engineFolder)).catch(() => ({ uid: undefined }));
  if (user === undefined || owner === undefined || owner === user) return;
  throw new UnusableDatabase(
    `DATA_DIR ${JSON.stringify(dataDir)} belongs to user ${owner}, who could not use the files that user ${user} would leave there`,
  );
}

/** The error for a folder that cannot be used. */
export const unusableFolder = (dataDir: string, error: unknown) =>
  new UnusableDatabase(
    `DATA_DIR is ${JSON.stringify(dataDir)}, but takes a folder that can be written to: ${errorText(error)}`,
    { cause: error },
  );
