/** Checks of the database: that of a server, or the embedded one, whether or not a gateway has it open. */

import { access, constants, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Config } from '../../config/config.ts';
import { serverOf } from '../../database/connection/client.ts';
import { findEmbedded, findProblem } from '../../database/embedded/embedded.ts';
import { findFileLimit } from '../../database/embedded/fileDescriptors.ts';
import { engineFolder } from '../../database/embedded/owner.ts';
import { errorText, withoutPassword } from '../../errors.ts';
import { askDatabase } from './connection.ts';
import { type CheckResult, type Finding, ok, problem } from './finding.ts';
import { nearestExisting } from './folders.ts';

export async function checkDatabase(config: Config): Promise<Finding[]> {
  const { DATABASE_URL, DATABASE_DIRECT_URL, DATA_DIR } = config;
  if (DATABASE_URL !== undefined) {
    const ways = { url: DATABASE_URL, directUrl: DATABASE_DIRECT_URL };
    return askDatabase(serverOf(DATABASE_URL), withoutPassword(DATABASE_URL), ways);
  }
  const folder = resolve(DATA_DIR);
  const unwritable = await access(await nearestExisting(folder), constants.W_OK | constants.X_OK).then(
    () => undefined,
    errorText,
  );
  if (unwritable !== undefined) {
    const advice = 'Make it a folder of the user who runs Dovetail, or set DATA_DIR to another.';
    return [{ check: 'database', ...problem(`DATA_DIR ${folder}: ${unwritable}`, advice) }];
  }
  const privacy = { check: 'database access', ...(await checkAccess(folder)) };
  const running = await findEmbedded(DATA_DIR);
  if (!running) return [{ check: 'database', ...(await checkFolder(DATA_DIR)) }, privacy];
  try {
    const asked = await askDatabase(
      running.connection,
      `embedded, in ${folder}, open in a running gateway`,
      undefined,
    );
    return [...asked, privacy];
  } finally {
    await running.close();
  }
}

/** A folder that no gateway has open. */
async function checkFolder(dataDir: string): Promise<CheckResult> {
  const folder = resolve(dataDir);
  const limit = await findFileLimit();
  if (limit) return problem(limit.says, limit.advice);
  const exists = await stat(join(folder, engineFolder)).catch(() => undefined);
  if (!exists) return ok(`embedded, none yet: it will be in ${folder}`);
  const found = await findProblem(dataDir);
  if (found === undefined) return ok(`embedded, in ${folder}, and no gateway has it open`);
  return problem(found.says, found.advice);
}

/** Whether only the folder's owner gets at the database. */
async function checkAccess(folder: string): Promise<CheckResult> {
  const opens = [
    { path: folder, bits: 0o022, may: 'put other files in the place of those in' },
    { path: join(folder, engineFolder), bits: 0o077, may: 'read or write' },
  ];
  for (const { path, bits, may } of opens) {
    const { mode } = (await stat(path).catch(() => undefined)) ?? { mode: 0 };
    if (mode & bits) return problem(`other users may ${may} ${path}`, `Run: chmod 700 ${path}`);
  }
  return ok('nobody but its owner gets at it');
}
