/** Checks of this machine: the room on its disk, its ports. */

import { statfs } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Config } from '../../config/config.ts';
import { lookAtPort } from '../../http/port.ts';
import { type CheckResult, ok, problem, skipped } from './finding.ts';
import { nearestExisting } from './folders.ts';

/** Free space, in bytes, below which a database is about to stop. */
const leastSpace = 200 * 1024 * 1024;

export async function checkDisk({ DATABASE_URL, DATA_DIR }: Config): Promise<CheckResult> {
  if (DATABASE_URL !== undefined) return skipped('nothing is stored here');
  const { bavail, bsize } = await statfs(await nearestExisting(resolve(DATA_DIR)));
  const free = bavail * bsize;
  const says = `${(free / 1024 ** 3).toFixed(1)} GiB are free for DATA_DIR`;
  return free >= leastSpace ? ok(says) : problem(says, 'Make room, or set DATA_DIR to another disk.');
}

/** @param setting the name of the one that chooses the port. */
export async function checkPort({ HOST }: Config, setting: string, port: number): Promise<CheckResult> {
  if (port === 0) return ok('any that is free');
  const state = await lookAtPort(HOST, port);
  if (state.is === 'free') return ok(`${port} is free`);
  if (state.is === 'gateway') return ok(`a running gateway has ${port}`);
  if (state.is === 'unusable')
    return problem(`${HOST} ${port}: ${state.reason}`, `Choose another ${setting}, or another HOST.`);
  return problem(
    `${port} is taken by another program`,
    `Stop it, or set ${setting} to another port; 0 picks a free one.`,
  );
}
