/**
 * The embedded PostgreSQL: PGlite on a folder, for a gateway without a database server.
 *
 * It promises that one process at a time has the folder, that a process that is killed loses nothing that it has
 * acknowledged, and that an engine that has failed is not used again. The gateway and its commands connect through a Unix
 * socket in the folder and take turns (`server.ts`); all other clients are rejected, since PGlite has one session only.
 *
 * It may be replaced by a PostgreSQL server: set DATABASE_URL. Then only this folder and `database.ts` know the difference.
 */

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chmod, cp, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { PGlite } from '@electric-sql/pglite';
import type pg from 'pg';
import { type Diagnosis, errorText, SetupError } from '../../errors.ts';
import { makeFolder, openEngine, unusableFolder } from './engineStart.ts';
import { findFileLimit } from './fileDescriptors.ts';
import { lockFolder } from './folderLock.ts';
import { adviceForDenied, engineFolder, findForeignOwner, rejectProblem } from './owner.ts';
import type { NotificationListener } from './protocol.ts';
import { serveEngine } from './server.ts';
import { commandName, connectionTo, isListening, reachableFolder, socketName } from './socketFolder.ts';

export interface EmbeddedPostgres {
  /** The settings with which `pg` or Prisma connect to the engine from this process. */
  readonly connection: pg.ClientConfig;
  readonly engine: PGlite;
  /** Called for each notification, on the channels that the engine was told to `LISTEN` to. */
  readonly listeners: Set<NotificationListener>;
  /** Resolves when the engine has failed. It cannot be used any more then. */
  readonly failure: Promise<Error>;
  close(): Promise<void>;
}

/** Another process has the folder open. */
export class FolderInUse extends SetupError {}

/**
 * Opens the database of the folder, creating it if there is none.
 * @param packed the file from which a new database is unpacked (`packed.ts`). If it does not exist, the engine creates one.
 * @throws {FolderInUse} when another process has it open. {SetupError} when it belongs to another user, or cannot be a folder.
 */
export async function openEmbedded(dataDir: string, packed?: string): Promise<EmbeddedPostgres> {
  rejectProblem(await findFileLimit());
  await makeFolder(resolve(dataDir)).catch((error) => {
    throw unusableFolder(dataDir, error);
  });
  rejectProblem(await findForeignOwner(dataDir));
  // Functions that close what was opened, to be called in reverse order.
  const opened: (() => unknown)[] = [];
  const close = async () => {
    for (const undo of opened.reverse()) await undo();
  };
  try {
    const folder = await reachableFolder(resolve(dataDir));
    opened.push(folder.release);
    const claimed = await lockFolder(folder.path).catch((error) => {
      throw unusableFolder(dataDir, error);
    });
    if ('holder' in claimed) {
      throw new FolderInUse(
        `DATA_DIR ${JSON.stringify(dataDir)} is in use by ${claimed.holder}. Stop it, or set DATA_DIR to another folder.`,
      );
    }
    const { isHeld, release } = claimed;
    opened.push(release);
    const engine = await openEngine(dataDir, join(folder.path, engineFolder), packed);
    const socket = join(folder.path, socketName);
    await rm(socket, { force: true });
    const listeners = new Set<NotificationListener>();
    // A name of its own: the client of a gateway whose folder was replaced must not use the engine of another gateway.
    const ownName = `${commandName}-${randomUUID()}`;
    const server = serveEngine(engine, {
      names: [ownName, commandName],
      onNotification(channel, payload) {
        for (const listener of listeners) listener(channel, payload);
      },
      findObstacle: () => (isHeld() ? undefined : lost(dataDir)),
    });
    const failure = once(server.failed, 'abort').then((): Error => server.failed.reason);
    // Closing an engine that has failed would never finish, or would write to a folder that another process has opened.
    opened.push(() => server.failed.aborted || engine.close());
    server.listen(socket);
    await once(server, 'listening');
    const watch = setInterval(server.check, lockInterval).unref();
    opened.push(() => {
      clearInterval(watch);
      server.check();
      server.stop();
    });
    await chmod(socket, 0o600);
    return { connection: connectionTo(folder.path, ownName), engine, listeners, failure, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Finds out what is wrong with the database of the folder, if anything. Opens a copy, since opening it would change it. */
export async function findProblem(dataDir: string): Promise<Diagnosis | undefined> {
  const foreign = await findForeignOwner(dataDir);
  if (foreign) return foreign;
  const copy = await mkdtemp(join(tmpdir(), 'dovetail-'));
  try {
    const path = join(copy, engineFolder);
    try {
      await cp(join(dataDir, engineFolder), path, { recursive: true });
    } catch (error) {
      return uncopied(dataDir, error);
    }
    await (await openEngine(dataDir, path)).close();
    return undefined;
  } catch (error) {
    const advice = 'Move it away, and restore a copy or start with a new one.';
    return { says: errorText(error), advice };
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}

/** The problem is not the database itself: there is no room for the copy, or another user has left files in the folder. */
function uncopied(dataDir: string, error: unknown): Diagnosis {
  return {
    says: `The database in ${dataDir} cannot be copied to look at it: ${errorText(error)}`,
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
    return { connection: connectionTo(folder.path, commandName), close: folder.release };
  await folder.release();
  return undefined;
}
