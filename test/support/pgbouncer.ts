/** A real PgBouncer in front of a real PostgreSQL. */

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './freePort.ts';
import { isListening, until } from './until.ts';

/** The command: Debian's, or the one that PGBOUNCER names. */
const command = process.env.PGBOUNCER ?? 'pgbouncer';

/** The version, such as `1.18.0`; undefined if PgBouncer is not installed. */
export const pgbouncerVersion = findVersion();

function findVersion(): string | undefined {
  try {
    return /PgBouncer (\S+)/.exec(execFileSync(command, ['--version'], { encoding: 'utf8' }))?.[1];
  } catch {
    return undefined;
  }
}

export type PgBouncer = Awaited<ReturnType<typeof startPgBouncer>>;

export type PoolMode = 'session' | 'transaction' | 'statement';

/**
 * @param url the database's own address.
 * @param settings more lines of its configuration.
 */
export async function startPgBouncer(url: string, mode: PoolMode, settings: readonly string[] = []) {
  const { hostname, port, username, password, pathname } = new URL(url);
  const folder = await mkdtemp(join(tmpdir(), 'dovetail-pgbouncer-'));
  // PgBouncer does not run as root, so another user has to read the file.
  await chmod(folder, 0o755);
  const listenPort = await freePort();
  const configuration = `
[databases]
* = host=${hostname} port=${port} user=${username} password=${password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listenPort}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
${settings.join('\n')}
`;
  const file = join(folder, 'pgbouncer.ini');
  await writeFile(file, configuration);
  const isRoot = process.getuid?.() === 0;
  const nobody = 65_534;
  const pgbouncer = spawn(command, ['-q', file], {
    stdio: ['ignore', 'ignore', 'pipe'],
    ...(isRoot && { uid: nobody, gid: nobody }),
  });
  const said: string[] = [];
  pgbouncer.stderr.setEncoding('utf8').on('data', (text: string) => said.push(text));
  await until('PgBouncer starts', () => {
    if (pgbouncer.exitCode !== null) throw new Error(`PgBouncer did not start: ${said.join('')}`);
    return isListening(listenPort);
  });
  return {
    /** The address of the database behind it. */
    url: `postgresql://${username}:${password}@127.0.0.1:${listenPort}${pathname}`,
    async close() {
      const ended = once(pgbouncer, 'exit');
      pgbouncer.kill('SIGKILL');
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
