/**
 * Checks the owner of a folder with a database. Only the owner may open it, as with the data directory of a PostgreSQL server: root
 * could write there as well, but the owner could not read the files that root leaves behind.
 */

import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { errorText, SetupError, systemCodeOf } from '../../errors.ts';

/** The name of the folder, in DATA_DIR, that has the files of the engine. */
export const engineFolder = 'postgres';

/** The user of this process; undefined on Windows. */
const ownUser = () => process.geteuid?.();

/**
 * Makes sure that this process may use the database of a folder.
 * @param isCommand whether a command opens it. A command of root does not create a database in a folder of another user. A gateway
 * does: in a container that runs as root, DATA_DIR is often a folder of a user of the host.
 * @throws {SetupError} when it belongs to another user.
 */
export async function assertOwn(dataDir: string, isCommand = false): Promise<void> {
  const user = ownUser();
  const owner =
    (await ownerOf(join(dataDir, engineFolder))) ??
    (isCommand && user === 0 ? await ownerOf(dataDir) : undefined);
  if (user === undefined || owner === undefined || owner === user) return;
  throw new SetupError(
    `DATA_DIR ${JSON.stringify(dataDir)} belongs to user ${owner}, who could not use the files that user ${user} would leave there. Run this as its owner, such as with sudo -u '#${owner}', or give the folder away: ${chown(dataDir, user)}`,
  );
}

/** Undefined if there is no such folder, or it cannot be inspected: then opening it reports the error. */
function ownerOf(path: string): Promise<number | undefined> {
  return stat(path).then(
    ({ uid }) => uid,
    () => undefined,
  );
}

/** The error for a folder that cannot be used. */
export function unusableFolder(dataDir: string, error: unknown): SetupError {
  const user = ownUser();
  const code = systemCodeOf(error);
  const text = errorText(error);
  const isDenied = code === 'EACCES' || code === 'EPERM' || text.includes('Permission denied');
  const advice =
    isDenied && user !== undefined
      ? `. If another user, such as root, has left files there, run as root: ${chown(dataDir, user)}`
      : '';
  return new SetupError(
    `DATA_DIR is ${JSON.stringify(dataDir)}, but takes a folder that can be written to: ${text}${advice}`,
    { cause: error },
  );
}

const chown = (dataDir: string, user: number) => `chown -R ${user} ${resolve(dataDir)}`;
