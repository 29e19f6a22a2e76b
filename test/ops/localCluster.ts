/**
 * Runs the services of `ops/cluster/compose.yaml` as processes of this machine. It uses the files of the cluster, in which only
 * addresses and paths are replaced.
 */

import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { chmod, chown, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '../support/freePort.ts';
import { pgbouncerVersion } from '../support/pgbouncer.ts';
import { queryOnce } from '../support/postgres.ts';
import { findPostgresPrograms } from '../support/postgresPrograms.ts';
import { isListening, until } from '../support/until.ts';

/** The haproxy of the system, or the one that the variable HAPROXY names. */
const haproxy = process.env.HAPROXY ?? 'haproxy';

/** A folder with all programs of a PostgreSQL, which the npm package does not have: that of Debian, or the one that PGPROGRAMS names. */
const postgresFolder = process.env.PGPROGRAMS ?? findNewest('/usr/lib/postgresql');

function findNewest(folder: string): string | undefined {
  const versions = existsSync(folder) ? readdirSync(folder) : [];
  return versions
    .sort((one, other) => Number(other) - Number(one))
    .map((version) => join(folder, version, 'bin'))
    .find((programs) => existsSync(join(programs, 'pg_basebackup')));
}

/** The programs that are not installed. */
export const missing = [
  ...(pgbouncerVersion === undefined ? ['pgbouncer'] : []),
  ...(spawnSync(haproxy, ['-v']).error ? ['haproxy'] : []),
  ...(postgresFolder === undefined ? ['a PostgreSQL with pg_basebackup'] : []),
];

/** The services with the port that each has in its container. */
const ports = {
  balancer: 4000,
  'gateway-1': 4000,
  'gateway-2': 4000,
  pgbouncer: 6432,
  primary: 5432,
  'standby-1': 5432,
  'standby-2': 5432,
};
export type Service = keyof typeof ports;

/** The other address of the balancer, which leads to the primary. */
const database = 'balancer:5432';

export const password = 'dovetail';

export type LocalCluster = Awaited<ReturnType<typeof createLocalCluster>>;

export async function createLocalCluster() {
  const { owner } = findPostgresPrograms();
  const folder = await mkdtemp(join(tmpdir(), 'dovetail-cluster-'));
  await chmod(folder, 0o755);
  const addresses = new Map<string, string>();
  for (const service of [...Object.keys(ports), database])
    addresses.set(service, `127.0.0.1:${await freePort()}`);
  const processes: ChildProcess[] = [];
  /** The address of a service, such as `127.0.0.1:40123`. */
  const address = (service: Service | typeof database) => addresses.get(service) ?? '';
  const portOf = (service: Service | typeof database) => address(service).split(':')[1] ?? '';
  /** The text with the addresses of the services replaced by those on this machine. */
  const here = (text: string) =>
    Object.entries(ports).reduce(
      (replaced, [service, port]) => replaced.replaceAll(`${service}:${port}`, addresses.get(service) ?? ''),
      text.replaceAll(database, address(database)),
    );

  /** Copies one of the files with these replacements. The file must contain each text that is to be replaced. */
  async function place(name: string, replacements: Readonly<Record<string, string>> = {}, into = folder) {
    let text = await readFile(join('ops/cluster', name), 'utf8');
    for (const [original, replacement] of Object.entries(replacements)) {
      if (!text.includes(original)) throw new Error(`${name} does not contain: ${original}`);
      text = text.replaceAll(original, replacement);
    }
    const file = join(into, name);
    await writeFile(file, here(text));
    return file;
  }

  /** Creates a folder for a service, owned by the user that runs it, and the environment of its programs. */
  async function prepare(service: Service) {
    const own = join(folder, service);
    await mkdir(own);
    if (owner.uid !== undefined && owner.gid !== undefined) await chown(own, owner.uid, owner.gid);
    const env = {
      ...process.env,
      PATH: `${postgresFolder}:${process.env.PATH}`,
      LC_ALL: 'C',
      PGDATA: join(own, 'data'),
      PGHOST: own,
      PGPORT: portOf(service),
      POSTGRES_PASSWORD: password,
      STANDBY: service.replace('-', '_'),
    };
    return { own, options: { ...owner, cwd: own, env } };
  }

  /** Starts a program, and waits until the service accepts connections. */
  async function run(service: Service, program: string, args: readonly string[], options: object) {
    const child = spawn(program, args, { ...options, stdio: ['ignore', 'ignore', 'pipe'], detached: true });
    processes.push(child);
    let output = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-4_000);
    });
    await until(`${service} starts`, () => {
      if (child.exitCode !== null) throw new Error(`${service} did not start: ${output}`);
      return isListening(Number(portOf(service)));
    });
    return child;
  }

  /** Starts the primary as the Docker image does: until the script has run, the database accepts connections by a Unix socket only. */
  async function startPrimary(settings: string) {
    const { own, options } = await prepare('primary');
    const server = `-c config_file=${settings} -c unix_socket_directories=${own}`;
    await writeFile(join(own, 'password'), password);
    const script = `
      initdb --pwfile=password --auth-local=trust --auth-host=scram-sha-256 --username=postgres --encoding=UTF8 --no-sync
      pg_ctl start --wait --silent -l log -o "${server} -c listen_addresses=''"
      sh ${await place('primary.sh')}
      pg_ctl stop --wait --silent --mode=fast`;
    await promisify(execFile)('sh', ['-ec', script], options);
    return run('primary', 'sh', ['-c', `exec postgres ${server}`], options);
  }

  async function startStandby(service: 'standby-1' | 'standby-2', settings: string) {
    const { own, options } = await prepare(service);
    const replacements = {
      '--host primary --port 5432': `--host 127.0.0.1 --port ${portOf('primary')}`,
      '/etc/postgresql/postgresql.conf': `${settings} -c unix_socket_directories=${own}`,
    };
    await run(service, 'sh', [await place('standby.sh', replacements, own)], options);
  }

  async function startPooler() {
    const { own, options } = await prepare('pgbouncer');
    const users = join(own, 'userlist.txt');
    const [major = 0, minor = 0] = (pgbouncerVersion ?? '').split('.').map(Number);
    const replacements = {
      'host=balancer port=5432': `host=127.0.0.1 port=${portOf(database)}`,
      'listen_addr = *': 'listen_addr = 127.0.0.1',
      'listen_port = 6432': `listen_port = ${portOf('pgbouncer')}`,
      '/tmp/userlist.txt': users,
      // Older versions do not know this setting, and do not start with it.
      ...(major === 1 && minor < 21 && { 'max_prepared_statements = 200': '' }),
    };
    const settings = await place('pgbouncer.ini', replacements, own);
    const inScript = { '/tmp/userlist.txt': users, '/etc/pgbouncer/pgbouncer.ini': settings };
    await run('pgbouncer', 'sh', [await place('pgbouncer.sh', inScript, own)], options);
  }

  async function startBalancer() {
    const settings = await place('haproxy.cfg', {
      'bind :4000': `bind ${address('balancer')}`,
      'bind :5432': `bind ${address(database)}`,
    });
    await run('balancer', haproxy, ['-db', '-f', settings], { cwd: folder });
  }

  const reachesPrimary = () =>
    queryOnce(`postgresql://dovetail:${password}@${address('pgbouncer')}/dovetail`, 'SELECT').then(
      () => true,
      () => false,
    );

  async function close() {
    await Promise.all(processes.map(end));
    await rm(folder, { recursive: true, force: true });
  }
  try {
    const settings = await place('postgresql.conf');
    const primary = await startPrimary(settings);
    const standbys = (['standby-1', 'standby-2'] as const).map((name) => startStandby(name, settings));
    await Promise.all([...standbys, startBalancer(), startPooler()]);
    // Docker restarts a gateway that comes before the balancer has found the primary. Here, each is started once.
    await until('the pooler leads to the primary', reachesPrimary, 60_000);
    return { address, here, losePrimary: () => end(primary), close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Kills a process with all processes that it has started. */
async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const ended = once(child, 'exit');
  process.kill(-child.pid, 'SIGKILL');
  await ended;
}
