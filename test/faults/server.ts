/** A PostgreSQL that can be stopped, killed and started again. */

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { freePort } from '../support/freePort.ts';
import { findPostgresPrograms } from '../support/postgresPrograms.ts';
import { until } from './supervised.ts';

export interface Server {
  readonly port: number;
  /** The settings of a connection as superuser. */
  readonly admin: pg.ClientConfig;
  start(): Promise<void>;
  /** Stops the server: `SIGINT` is a fast shutdown, `SIGQUIT` an immediate one, and `SIGKILL` a crash. */
  stop(signal: 'SIGINT' | 'SIGQUIT' | 'SIGKILL'): Promise<void>;
}

function own(folder: string): void {
  const { uid, gid } = findPostgresPrograms().owner;
  if (uid !== undefined) execFileSync('chown', ['-R', `${uid}:${gid}`, folder]);
}

const user = 'postgres';

/** Creates a server in the folder, and starts it. */
export async function createServer(folder: string, settings: readonly string[]): Promise<Server> {
  await mkdir(folder, { recursive: true });
  own(folder);
  const { folder: programs, owner } = findPostgresPrograms();
  execFileSync(
    join(programs, 'initdb'),
    ['-D', folder, '-U', user, '-A', 'trust', '--no-sync', '-E', 'UTF8'],
    { ...owner, cwd: folder, stdio: 'ignore' },
  );
  await appendFile(join(folder, 'postgresql.conf'), `${settings.join('\n')}\n`);
  const server = serverIn(folder, await freePort());
  await server.start();
  return server;
}

function serverIn(folder: string, port: number): Server {
  const { folder: programs, owner } = findPostgresPrograms();
  let child: ChildProcess | undefined;
  const admin = { host: '127.0.0.1', port, user, database: 'postgres' };
  const isRunning = () => child !== undefined && child.exitCode === null && child.signalCode === null;
  return {
    port,
    admin,
    async start() {
      // After a crash the remaining processes hold the data folder for a moment, so the start is tried again.
      await until(`PostgreSQL starts in ${folder}`, async () => {
        if (!isRunning()) {
          child = spawn(join(programs, 'postgres'), ['-D', folder, '-p', String(port), '-k', ''], {
            ...owner,
            cwd: folder,
            stdio: 'ignore',
          });
        }
        return query(admin, 'SELECT 1').then(
          () => true,
          () => false,
        );
      });
    },
    async stop(signal) {
      if (!child || !isRunning()) return;
      const ended = once(child, 'exit');
      child.kill(signal);
      await ended;
    },
  };
}

/** Runs one statement on a connection of its own. */
export async function query(connection: pg.ClientConfig, text: string): Promise<object[]> {
  const client = new pg.Client({ connectionTimeoutMillis: 2_000, ...connection });
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query<object>(text)).rows;
  } finally {
    await client.end();
  }
}
