/** The programs that run what is in `ops/cluster`, where they are installed. */

import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Debian's, or the one that HAPROXY names. */
export const haproxy = process.env.HAPROXY ?? 'haproxy';

/** A folder with all programs of one PostgreSQL, which npm's has not: Debian's, or the one that PGPROGRAMS names. */
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
