/**
 * Which user a folder with a database belongs to. Only that user may open it, as with the data directory of a PostgreSQL
 * server: a process of root could write there as well, and the owner could not read the files that it leaves behind.
 */

import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { type Diagnosis, SetupError, systemCodeOf } from '../../errors.ts';

/** The name of the folder, in DATA_DIR, that has the files of the engine. */
export const engineFolder = 'postgres';

/** The user whom files of this process belong to; undefined on Windows. */
const ownUser = () => process.geteuid?.();

/** The problem with a database that belongs to another user; undefined where there is none. */
export async function findForeignOwner(dataDir: string): Promise<Diagnosis | undefined> {
  return foreignOwner(dataDir, await ownerOf(join(dataDir, engineFolder)));
}

/**
 * Makes sure that a command may use DATA_DIR. As root it does not even make a database in a folder of another user. For a
 * gateway that may be meant: in a container that runs as root, DATA_DIR is often a folder of a user of the host.
 * @throws {SetupError}
 */
export async function assertOwnFolder(dataDir: string): Promise<void> {
  const owner = await ownerOf(join(dataDir, engineFolder));
  rejectProblem(foreignOwner(dataDir, owner ?? (ownUser() === 0 ? await ownerOf(dataDir) : undefined)));
}

function foreignOwner(dataDir: string, owner: number | undefined): Diagnosis | undefined {
  const user = ownUser();
  if (user === undefined || owner === undefined || owner === user) return undefined;
  return {
    says: `DATA_DIR ${JSON.stringify(dataDir)} belongs to user ${owner}, who could not use the files that user ${user} would leave there`,
    advice: `Run this as its owner, such as with sudo -u '#${owner}', or give the folder away: ${chown(dataDir, user)}`,
  };
}

/** @throws {SetupError} where there is a problem. */
export function rejectProblem(problem: Diagnosis | undefined): void {
  if (problem) throw new SetupError(`${problem.says}. ${problem.advice}`);
}

/** Undefined where there is no such folder, or nothing can be said of it: opening it says why. */
function ownerOf(path: string): Promise<number | undefined> {
  return stat(path).then(
    ({ uid }) => uid,
    () => undefined,
  );
}

/** What to do about files that this process may not use; undefined where an error is about something else. */
export function adviceForDenied(dataDir: string, error: unknown): string | undefined {
  const user = ownUser();
  if (user === undefined || !isDenied(error)) return undefined;
  return `If another user, such as root, has left files there, run as root: ${chown(dataDir, user)}`;
}

const chown = (dataDir: string, user: number) => `chown -R ${user} ${resolve(dataDir)}`;

/** Whether an error says that this user may not use a file: one of Node's, or what the engine has written. */
export function isDenied(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = systemCodeOf(error);
  return code === 'EACCES' || code === 'EPERM' || error.message.includes('Permission denied');
}
