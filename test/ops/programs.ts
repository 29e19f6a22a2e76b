/** Finds the programs that the cluster of `ops/cluster` needs, if they are installed. */

import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** The haproxy of the system, or the one that the variable HAPROXY names. */
export const haproxy = process.env.HAPROXY ?? 'haproxy';

/** A folder with all programs of a PostgreSQL, which the npm package does not have: that of Debian, or the one that PGPROGRAMS names. */
export const postgresFolder = process.env.PGPROGRAMS ?? findNewest('/usr/lib/postgresql');

function findNewest(folder: string): string | undefined {
  if (!existsSync(folder)) return undefined;
  return readdirSync(folder)
    .sort((one, other) => Number(other) - Number(one))
    .map((version) => join(folder, version, 'bin'))
    .find(
      (programs) => existsSync(join(programs, 'pg_basebackup')) && existsSync(join(programs, 'postgres')),
    );
}

export const hasHaproxy = spawnSync(haproxy, ['-v']).error === undefined;
