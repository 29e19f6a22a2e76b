/** A real PostgreSQL server from npm, in a temporary folder. */

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { appendFile, chmod, chown, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { freePort } from './freePort.ts';
import { findPostgresPrograms } from './postgresPrograms.ts';

const user = 'postgres';
const password = 'postgres';

/** @param settings of the server, in addition to those that make it fast but unsafe. */
export async function startPostgres(settings: Readonly<Record<string, string>> = { max_connections: '200' }) {
  const folder = await createFolder();
  await initialiseData(folder, settings);
  const port = await freePort();
  const server = await runServer(folder, port);
  return {
    /** The address of the server, to which `/` and the name of a database are added. */
    url: serverUrl(port),
    createDatabase: (name: string) => createDatabase(serverUrl(port), name),
    async stop() {
      await server.stop('fast');
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** The address of the server on a port of this machine. */
export function serverUrl(port: number): string {
  return `postgresql://${user}:${password}@127.0.0.1:${port}`;
}

/** Creates an empty database on the server with the address. */
export async function createDatabase(url: string, name: string): Promise<void> {
  await queryOnce(`${url}/postgres`, `CREATE DATABASE ${pg.escapeIdentifier(name)}`);
}

/** Runs statements, given as one string, over a connection of its own. */
export async function queryOnce<Row extends pg.QueryResultRow>(url: string, sql: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query<Row>(sql)).rows;
  } finally {
    await client.end();
  }
}

/** Creates a temporary folder for a server, whose data will be in `data` below it. */
export async function createFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'dovetail-postgres-'));
  // The server may run as another user, who needs access to its folder.
  await chmod(folder, 0o755);
  return folder;
}

/** Initialises an empty server in the folder. */
export async function initialiseData(
  folder: string,
  settings: Readonly<Record<string, string>>,
): Promise<void> {
  const { folder: programs, owner } = findPostgresPrograms();
  const data = join(folder, 'data');
  await mkdir(data, { mode: 0o700 });
  if (owner.uid !== undefined && owner.gid !== undefined) await chown(data, owner.uid, owner.gid);
  const passwordFile = join(folder, 'password');
  await writeFile(passwordFile, `${password}\n`);
  await promisify(execFile)(
    join(programs, 'initdb'),
    [
      `--pgdata=${data}`,
      '--auth=password',
      `--username=${user}`,
      `--pwfile=${passwordFile}`,
      '--lc-messages=C',
      '--no-sync',
      // The server derives a key from the password of each connection: with the default, that is half the work of connecting.
      '--set=scram_iterations=1',
    ],
    options(folder),
  );
  // In the file rather than on the command line, so that ALTER SYSTEM can change them.
  const lines = Object.entries({ fsync: 'off', ...settings }).map(
    ([name, value]) => `${name} = '${value.replaceAll("'", "''")}'\n`,
  );
  await appendFile(join(data, 'postgresql.conf'), lines.join(''));
}

/** How a server ends: after closing its connections and saving everything, at once, or by a kill, as in a crash. */
const stopSignals = { fast: 'SIGINT', immediate: 'SIGQUIT', killed: 'SIGKILL' } as const;
export type StopMode = keyof typeof stopSignals;

export type RunningServer = Awaited<ReturnType<typeof runServer>>;

/** Starts the server of the folder, and waits until it takes connections. */
export async function runServer(folder: string, port: number) {
  const { folder: programs } = findPostgresPrograms();
  const server = spawn(join(programs, 'postgres'), ['-D', join(folder, 'data'), '-p', String(port)], {
    ...options(folder),
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const abandon = () => {
    server.kill('SIGQUIT');
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  };
  process.once('exit', abandon);
  const ended = once(server, 'exit').finally(() => process.off('exit', abandon));
  let log = '';
  server.stderr.setEncoding('utf8').on('data', (text: string) => {
    log = (log + text).slice(-longestLog);
  });
  const isRunning = () => server.exitCode === null && server.signalCode === null;
  while (!(await isReady(folder, server))) {
    if (!isRunning()) throw new Error(`PostgreSQL did not start: ${log.slice(-2_000)}`);
    await sleep(10);
  }
  return {
    /** The end of the server's log. */
    log: () => log,
    isRunning,
    async stop(mode: StopMode) {
      if (isRunning()) server.kill(stopSignals[mode]);
      await ended;
    },
  };
}

/** In characters. */
const longestLog = 2_000_000;

function options(folder: string) {
  return { ...findPostgresPrograms().owner, cwd: folder, env: { ...process.env, LC_MESSAGES: 'C' } };
}

/** Whether the server takes connections. It writes that into a file, where `pg_ctl` looks as well. */
async function isReady(folder: string, { pid }: ChildProcess): Promise<boolean> {
  const text = await readFile(join(folder, 'data/postmaster.pid'), 'utf8').catch(() => '');
  const lines = text.split('\n').map((line) => line.trim());
  // A killed server leaves its file behind.
  return lines[0] === String(pid) && lines[7] === 'ready';
}
