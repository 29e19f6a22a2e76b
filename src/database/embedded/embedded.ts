/**
 * The embedded PostgreSQL: PGlite on a folder, for a gateway without a database server.
 *
 * Promises that only one process at a time has the folder open, that a killed process loses no acknowledged write, and that a
 * failed engine is not used again. The gateway and its commands connect through a Unix socket in the folder and take turns
 * (`server.ts`). All other clients are rejected, since PGlite has only one session.
 *
 * May be replaced by a PostgreSQL server: set DATABASE_URL. Only this folder and `database.ts` know the difference.
 */

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdir, readdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type pg from 'pg';
import { type Diagnosis, errorText, SetupError, systemCodeOf } from '../../errors.ts';
import { openEngine } from './engineStart.ts';
import { isListening, lockFolder } from './folderLock.ts';
import { assertOwn, engineFolder, unusableFolder } from './owner.ts';
import type { NotificationListener } from './server.ts';
import { commandName, connectionTo, serveEngine } from './server.ts';

export interface EmbeddedPostgres {
  /** The settings with which `pg` or Prisma connect to the engine from this process. */
  readonly connection: pg.ClientConfig;
  /** Called for each notification, on the channels that the engine was told to `LISTEN` to. */
  readonly listeners: Set<NotificationListener>;
  /** Resolves when the engine has failed. It cannot be used any more then. */
  readonly failure: Promise<Error>;
  close(): Promise<void>;
}

/** The name of the socket file that PostgreSQL clients expect. */
const socketName = '.s.PGSQL.5432';

/** The address of a socket has at most 107 bytes on Linux (unix(7)) and 103 elsewhere. The longest name in the folder takes 19. */
const longestFolder = (process.platform === 'linux' ? 107 : 103) - 19;

/**
 * Opens the database of the folder, creating it if there is none.
 * @param packed the file from which a new database is unpacked (`newDatabase.ts`). If it does not exist, the engine creates one.
 * @throws {FolderInUse} when another process has it open. {SetupError} when it belongs to another user, or cannot be a folder.
 */
export async function openEmbedded(dataDir: string, packed?: string): Promise<EmbeddedPostgres> {
  const folder = resolve(dataDir);
  if (Buffer.byteLength(folder) > longestFolder)
    throw new SetupError(
      `DATA_DIR is ${JSON.stringify(folder)}, but takes a path of at most ${longestFolder} bytes, since there is a socket in it.`,
    );
  await mkdir(folder, { recursive: true, mode: 0o700 }).catch((error) => {
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
  const server = serveEngine(engine, {
    names: [ownName, commandName],
    onNotification(channel, payload) {
      for (const listener of listeners) listener(channel, payload);
    },
    findObstacle: () => (lock.isHeld() ? undefined : lost(folder)),
  });
  const failure = once(server.failed, 'abort').then((): Error => server.failed.reason);
  const socket = join(folder, socketName);
  await rm(socket, { force: true });
  server.listen(socket);
  await once(server, 'listening');
  await chmod(socket, 0o600);
  return {
    connection: connectionTo(folder, ownName),
    listeners,
    failure,
    async close() {
      server.stop();
      // Closing an engine that has failed would never finish, or would write to a folder that another process has opened.
      if (!server.failed.aborted && lock.isHeld()) await engine.close();
      await lock.release();
    },
  };
}

function lost(folder: string): SetupError {
  return new SetupError(
    `DATA_DIR ${JSON.stringify(folder)} was removed or replaced while it was open. Nothing more is written to it.`,
  );
}

/** Finds out, by opening it, why a gateway cannot open the database of the folder; undefined if it can. */
export function findProblem(dataDir: string): Promise<Diagnosis | undefined> {
  const advice = 'Correct that, restore a copy, or set DATA_DIR to another folder.';
  return openEmbedded(dataDir).then(
    ({ close }) => close().then(() => undefined),
    (error) => ({ says: errorText(error), advice }),
  );
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
  const folder = resolve(dataDir);
  const isOpen = await isListening(join(folder, socketName)).catch(() => false);
  return isOpen ? connectionTo(folder, commandName) : undefined;
}
