/** The lock of a database folder. PGlite does not lock it, and two processes that open the same folder destroy the database. */

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { chmod, link, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { isDenied } from './owner.ts';

export interface Claimed {
  /** Whether this process still holds the lock: the folder may have been removed, and created again by another process. */
  isHeld(): boolean;
  /** Releases the lock. */
  release(): Promise<void>;
}

export interface Rejected {
  /** The process that holds the lock, such as `process 42`. */
  readonly holder: string;
}

/**
 * Locks the folder for this process.
 *
 * The lock is a listening socket, which stops listening when its process ends. Its file stays, though, and to remove a file
 * that nobody listens on is a race: meanwhile it may have become the lock of a faster process. So the lock files are
 * numbered, the one with the highest number is the lock and is never removed, and only one process can link the next number.
 */
export async function lockFolder(folder: string): Promise<Claimed | Rejected> {
  const draft = join(folder, `.lock.new-${randomBytes(4).toString('hex')}`);
  const server = createServer((socket) => socket.on('error', () => {}).end(String(process.pid)));
  try {
    server.listen(draft);
    await once(server, 'listening');
    await chmod(draft, 0o600);
    // As long as the socket is bound, no other file has its inode number.
    const { dev, ino } = statSync(draft);
    for (;;) {
      const highest = Math.max(0, ...(await locksIn(folder)));
      const holder = await ask(lockPath(folder, highest));
      if (holder !== undefined) {
        server.close();
        return { holder };
      }
      const lock = lockPath(folder, highest + 1);
      if (!(await linkNew(draft, lock))) continue;
      const numbers = await locksIn(folder);
      if (numbers.some((number) => number > highest + 1)) {
        // The number was free because another process had taken a higher one and removed it.
        await rm(lock, { force: true });
        continue;
      }
      await rm(draft, { force: true });
      for (const number of numbers.filter((each) => each <= highest)) {
        await rm(lockPath(folder, number), { force: true });
      }
      const isHeld = () => {
        const found = statSync(lock, { throwIfNoEntry: false });
        return found?.ino === ino && found.dev === dev;
      };
      const release = async () => {
        // An empty file means the same as a socket that nobody listens on, and can be copied with the folder.
        if (isHeld()) {
          await writeFile(draft, '', { mode: 0o600 })
            .then(() => rename(draft, lock))
            .catch(() => {});
        }
        server.close();
      };
      return { isHeld, release };
    }
  } catch (error) {
    server.close();
    throw error;
  }
}

const lockPath = (folder: string, number: number) => join(folder, `.lock.${number}`);

async function locksIn(folder: string): Promise<number[]> {
  const names = await readdir(folder);
  return names.flatMap((name) => /^\.lock\.(\d+)$/.exec(name)?.[1] ?? []).map(Number);
}

/** Gives the file another name, unless that is taken. */
function linkNew(path: string, name: string): Promise<boolean> {
  return link(path, name).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'EEXIST') return false;
      throw error;
    },
  );
}

/** How long, in milliseconds, the holder may take to respond: it may be busy with a long query. */
const holderTimeout = 2_000;

/**
 * Which process listens on the socket, or undefined if none does.
 * @throws when this user may not connect to it. That says nothing about a process: the file may be left from one of another
 * user.
 */
function ask(path: string): Promise<string | undefined> {
  return new Promise((settle, fail) => {
    let response = '';
    const socket = connect(path);
    const say = () => settle(response === '' ? 'another process' : `process ${response}`);
    socket.setTimeout(holderTimeout, () => socket.destroy());
    socket.on('data', (data) => {
      response += data;
    });
    socket.once('error', (error) => {
      if (isDenied(error)) fail(error);
      else if (isNobody(error)) settle(undefined);
      else say();
    });
    socket.once('close', say);
  });
}

/** Whether the error of a connection means that nobody listens: on an old socket, no file, or the empty file in its place. */
function isNobody({ code }: NodeJS.ErrnoException): boolean {
  return code === 'ECONNREFUSED' || code === 'ENOENT' || code === 'ENOTSOCK';
}
