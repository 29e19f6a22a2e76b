/** A real PostgreSQL server from npm, in a temporary folder. */

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { findPostgresPrograms } from './postgresPrograms.ts';

export interface PostgresServer {
  /** Its address, to which `/` and the name of a database are added. */
  readonly url: string;
  createDatabase(name: string): Promise<void>;
  stop(): Promise<void>;
}

const user = 'postgres';
const password = 'postgres';

/** @param settings of the server, beside those that make it fast at the cost of its data. */
export async function startPostgres(
  settings: Readonly<Record<string, string>> = { max_connections: '200' },
): Promise<PostgresServer> {
  const { folder: programs, owner } = findPostgresPrograms();
  const folder = await mkdtemp(join(tmpdir(), 'dovetail-postgres-'));
  // The server may run as another user, who has to get to its folder.
  await chmod(folder, 0o755);
  const data = join(folder, 'data');
  await mkdir(data, { mode: 0o700 });
  if (owner.uid !== undefined && owner.gid !== undefined) await chown(data, owner.uid, owner.gid);
  const passwordFile = join(folder, 'password');
  await writeFile(passwordFile, `${password}\n`);
  const options = { ...owner, cwd: folder, env: { ...process.env, LC_MESSAGES: 'C' } };
  await promisify(execFile)(
    join(programs, 'initdb'),
    [
      `--pgdata=${data}`,
      '--auth=password',
      `--username=${user}`,
      `--pwfile=${passwordFile}`,
      '--lc-messages=C',
      '--no-sync',
    ],
    options,
  );
  const port = await freePort();
  const flags = Object.entries({ fsync: 'off', ...settings }).flatMap(([name, value]) => [
    '-c',
    `${name}=${value}`,
  ]);
  const server = spawn(join(programs, 'postgres'), ['-D', data, '-p', String(port), ...flags], {
    ...options,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  await isReady(server);
  const url = `postgresql://${user}:${password}@127.0.0.1:${port}`;
  return {
    url,
    async createDatabase(name) {
      const client = new pg.Client({ connectionString: `${url}/postgres` });
      await client.connect();
      await client.query(`CREATE DATABASE ${client.escapeIdentifier(name)}`);
      await client.end();
    },
    async stop() {
      const ended = once(server, 'exit');
      server.kill('SIGINT');
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Waits until the server takes connections, and fails with what it said when it ends instead. */
function isReady(server: ChildProcess): Promise<void> {
  let said = '';
  return new Promise((settle, fail) => {
    server.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-2_000);
      if (said.includes('ready to accept connections')) settle();
    });
    server.once('error', fail).once('exit', () => fail(new Error(`PostgreSQL did not start: ${said}`)));
  });
}

/** A port that nothing listens on. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((settle) => server.listen(0, '127.0.0.1', settle));
  const address = server.address();
  await new Promise((settle) => server.close(settle));
  if (typeof address !== 'object' || address === null) throw new Error('no port is free');
  return address.port;
}
