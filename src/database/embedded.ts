/** The embedded PostgreSQL: kept in DATA_DIR, and offered on a Unix socket in that folder. */

import { once } from 'node:events';
import { chmod, link, mkdir, mkdtemp, rename, rm, symlink, unlink } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import type pg from 'pg';
import { SetupError } from '../config.ts';
import { type NotificationListener, serveEngine } from './socket.ts';

export interface EmbeddedPostgres {
  /** How `pg`, Prisma or `psql` reach the engine, from this process or another. */
  readonly connection: pg.ClientConfig;
  readonly engine: PGlite;
  /** Who hears what `NOTIFY` sends, once the engine was told to `LISTEN`. */
  readonly listeners: Set<NotificationListener>;
  close(): Promise<void>;
}

/** PGlite reserves 128 MB for pages unless told otherwise, but the operating system keeps them at hand as well. */
const startParams = [...PGlite.defaultStartParams, '-c', 'shared_buffers=16MB'];

/**
 * Opens the database of the folder, creating it if there is none.
 * @throws {SetupError} when another process has it open.
 */
export async function openEmbedded(dataDir: string): Promise<EmbeddedPostgres> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const folder = await reachableFolder(resolve(dataDir));
  const lock = await claim(join(folder.path, '.lock'), dataDir).catch(async (error) => {
    await folder.release();
    throw error;
  });
  try {
    const socket = join(folder.path, '.s.PGSQL.5432');
    await rm(socket, { force: true });
    const engine = await PGlite.create({ dataDir: join(folder.path, 'postgres'), startParams });
    const listeners = new Set<NotificationListener>();
    const server = serveEngine(engine, (channel, payload) => {
      for (const listener of listeners) listener(channel, payload);
    });
    server.listen(socket);
    await once(server, 'listening');
    await chmod(socket, 0o600);
    return {
      connection: connectionTo(folder.path),
      engine,
      listeners,
      async close() {
        server.close();
        server.closeConnections();
        await engine.close();
        await release(lock);
        await folder.release();
      },
    };
  } catch (error) {
    await release(lock);
    await folder.release();
    throw error;
  }
}

/** The address of the engine that another process has opened, or undefined if none has. */
export async function findEmbedded(dataDir: string) {
  const folder = await reachableFolder(resolve(dataDir));
  const socket = join(folder.path, '.s.PGSQL.5432');
  if ((await ask(socket)) !== undefined)
    return { connection: connectionTo(folder.path), close: folder.release };
  await folder.release();
  return undefined;
}

/** PGlite has one user and one database, and asks for no password: the folder's mode keeps others out. */
function connectionTo(host: string): pg.ClientConfig {
  return { host, user: 'postgres', database: 'postgres' };
}

/**
 * The folder under a path short enough for a socket in it: the kernel keeps 108 bytes for a socket's address
 * (unix(7)), which a folder deep in a file system can exceed. A link in the temporary folder stands in then.
 */
async function reachableFolder(path: string): Promise<{ path: string; release(): Promise<void> }> {
  if (Buffer.byteLength(join(path, '.s.PGSQL.5432')) < 100) return { path, release: async () => {} };
  const parent = await mkdtemp(join(tmpdir(), 'dovetail-'));
  await symlink(path, join(parent, 'data'));
  return { path: join(parent, 'data'), release: () => rm(parent, { recursive: true, force: true }) };
}

/**
 * Makes this process the only one in the folder. PGlite takes no lock of its own, and two processes in one
 * folder destroy it. A listening socket is a lock that dies with its process; it answers with the process id.
 */
async function claim(path: string, dataDir: string): Promise<Server> {
  for (;;) {
    const server = createServer((socket) => socket.on('error', () => {}).end(String(process.pid)));
    const failure = await new Promise<NodeJS.ErrnoException | undefined>((settle) => {
      server.once('error', settle).listen(path, () => settle(undefined));
    });
    if (!failure) return server.unref();
    if (failure.code !== 'EADDRINUSE') throw failure;

    // The name is taken: by a live process, or left behind by one that was killed. Moving it aside before
    // looking again keeps two processes that start together from each removing the other's fresh lock.
    const aside = `${path}.${process.pid}`;
    await rename(path, aside).catch(() => {});
    const holder = await ask(aside);
    if (holder !== undefined) await link(aside, path).catch(() => {});
    await unlink(aside).catch(() => {});
    if (holder !== undefined) {
      throw new SetupError(
        `DATA_DIR ${JSON.stringify(dataDir)} is in use by process ${holder}. Stop it, or set DATA_DIR to another folder.`,
      );
    }
  }
}

/** What the socket's process says, or undefined if none listens. */
function ask(path: string): Promise<string | undefined> {
  return new Promise((settle) => {
    let answer = '';
    const socket = connect(path);
    // A PostgreSQL waits for its client to speak first, so connecting is all the answer there is.
    socket.setTimeout(200, () => socket.destroy());
    socket.on('data', (data) => {
      answer += data;
    });
    socket.once('connect', () => socket.once('close', () => settle(answer)));
    socket.once('error', () => settle(undefined));
  });
}

function release(lock: Server): Promise<void> {
  return new Promise((settle) => {
    lock.close(() => settle());
  });
}
