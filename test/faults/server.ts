/** A PostgreSQL that can be stopped, killed, copied to a standby and started again. */

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, chmod, cp, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { freePort } from '../support/postgres.ts';
import { findPostgresPrograms } from '../support/postgresPrograms.ts';
import { until } from './watched.ts';

export interface Server {
  readonly folder: string;
  readonly port: number;
  /** A connection as its administrator. */
  readonly admin: pg.ClientConfig;
  start(): Promise<void>;
  /** Ends it: `SIGINT` in good order, `SIGQUIT` at once, `SIGKILL` without its knowing. */
  stop(signal: 'SIGINT' | 'SIGQUIT' | 'SIGKILL'): Promise<void>;
  isRunning(): boolean;
}

function own(folder: string): void {
  const { uid, gid } = findPostgresPrograms().owner;
  if (uid !== undefined) execFileSync('chown', ['-R', `${uid}:${gid}`, folder]);
}

const user = 'postgres';

/** Makes a new server in the folder, which it starts. */
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
    folder,
    port,
    admin,
    isRunning,
    async start() {
      // What a killed server's processes leave behind they let go of by themselves.
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

/**
 * Makes a standby out of a copy of a running server, which from then on acknowledges nothing that the standby has
 * not got (PostgreSQL's documentation, "Making a Base Backup Using the Low Level API").
 */
export async function createStandby(primary: Server, folder: string): Promise<Server> {
  const client = new pg.Client(primary.admin);
  await client.connect();
  await client.query(`SELECT pg_backup_start('standby', true)`);
  await cp(primary.folder, folder, { recursive: true, filter: (path) => !path.endsWith('postmaster.pid') });
  for (const name of await readdir(join(folder, 'pg_wal')))
    await rm(join(folder, 'pg_wal', name), { recursive: true, force: true });
  const { rows } = await client.query<{ labelfile: string }>('SELECT labelfile FROM pg_backup_stop(false)');
  await writeFile(join(folder, 'backup_label'), rows[0]?.labelfile ?? '');
  await writeFile(join(folder, 'standby.signal'), '');
  await appendFile(
    join(folder, 'postgresql.conf'),
    `primary_conninfo = 'host=127.0.0.1 port=${primary.port} user=${user} application_name=standby'\n`,
  );
  own(folder);
  await chmod(folder, 0o700);
  const standby = serverIn(folder, await freePort());
  await standby.start();
  await until('the standby streams', async () => {
    const streaming = await client.query(`SELECT FROM pg_stat_replication WHERE state = 'streaming'`);
    return streaming.rowCount === 1;
  });
  await client.query(`ALTER SYSTEM SET synchronous_standby_names = 'standby'`);
  await client.query('SELECT pg_reload_conf()');
  await client.end();
  return standby;
}
