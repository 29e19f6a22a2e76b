/** Checks of this machine: its Node, the room on its disk, its ports. */

import { once } from 'node:events';
import { statfs } from 'node:fs/promises';
import { createServer } from 'node:net';
import { resolve } from 'node:path';
import type { Config } from '../../config.ts';
import { errorText } from '../../errors.ts';
import { originOf } from '../../http/listen.ts';
import { isTooOld, oldestNode } from '../oldestNode.ts';
import { ok, problem, skipped, timeout, type Verdict } from './finding.ts';
import { nearestExisting } from './folders.ts';

/** Free space, in bytes, below which a database is about to stop. */
const leastSpace = 200 * 1024 * 1024;

/** @param version such as `20.19.0`. */
export function checkNode(version: string): Verdict {
  return isTooOld(version)
    ? problem(`Node ${version}`, `Install Node ${oldestNode} or later.`)
    : ok(`Node ${version}`);
}

export async function checkDisk({ DATABASE_URL, DATA_DIR }: Config): Promise<Verdict> {
  if (DATABASE_URL !== undefined) return skipped('nothing is stored here');
  const { bavail, bsize } = await statfs(await nearestExisting(resolve(DATA_DIR)));
  const free = bavail * bsize;
  const says = `${(free / 1024 ** 3).toFixed(1)} GiB are free for DATA_DIR`;
  return free >= leastSpace ? ok(says) : problem(says, 'Make room, or set DATA_DIR to another disk.');
}

/** @param setting the name of the one that chooses the port. */
export async function checkPort({ HOST }: Config, setting: string, port: number): Promise<Verdict> {
  if (port === 0) return ok('any that is free');
  const server = createServer();
  try {
    server.listen(port, HOST);
    await once(server, 'listening');
    server.close();
    return ok(`${port} is free`);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code !== 'EADDRINUSE')
      return problem(`${HOST} ${port}: ${errorText(error)}`, `Choose another ${setting}, or another HOST.`);
    if (await isGateway(HOST, port)) return ok(`a running gateway has ${port}`);
    return problem(
      `${port} is taken by another program`,
      `Stop it, or set ${setting} to another port; 0 picks a free one.`,
    );
  }
}

/** Whether it is a gateway that listens there, on either of its ports. */
async function isGateway(host: string, port: number): Promise<boolean> {
  const near = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  const origin = originOf(near, port);
  const says = async (path: string) => {
    const response = await fetch(origin + path, { signal: AbortSignal.timeout(timeout) });
    return response.text();
  };
  try {
    return (await says('/healthz')) === 'alive\n' || (await says('/metrics')).includes('dovetail_build_info');
  } catch {
    return false;
  }
}
