/** The socket of an embedded database: where it is in the file system, and how clients connect to it. */

import { once } from 'node:events';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { SetupError } from '../../errors.ts';

/** The name of the socket file that PostgreSQL clients expect. */
export const socketName = '.s.PGSQL.5432';

/** The name by which the server knows the gateway's commands. It is no secret: it keeps out clients that cannot take turns. */
export const commandName = 'dovetail';

/** PGlite has one user and one database, and needs no password: the mode of the folder keeps other users out. */
export function connectionTo(host: string, name: string): pg.ClientConfig {
  return { host, user: 'postgres', database: 'postgres', application_name: name, ssl: false };
}

/** The address of a socket has at most 107 bytes on Linux (unix(7)) and 103 elsewhere. The longest name in the folder takes 19. */
const longestFolder = (process.platform === 'linux' ? 107 : 103) - 19;

/**
 * The folder by a path that is short enough for the address of a socket in it. If its own path is too long, that is a
 * symbolic link in the temporary folder.
 */
export async function reachableFolder(path: string): Promise<{ path: string; release(): Promise<void> }> {
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
export async function isListening(path: string): Promise<boolean> {
  const socket = connect(path);
  const isThere = await once(socket, 'connect').then(
    () => true,
    () => false,
  );
  socket.destroy();
  return isThere;
}
