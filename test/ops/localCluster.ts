/**
 * Runs the services of `ops/cluster/compose.yaml` as processes of this machine. It uses the files of the cluster, in which only
 * addresses and paths are replaced.
 */

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { freePort } from '../support/freePort.ts';
import { pgbouncerVersion } from '../support/pgbouncer.ts';
import { findPostgresPrograms } from '../support/postgresPrograms.ts';
import { haproxy, postgresFolder } from './programs.ts';

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

export interface LocalCluster {
  /** The address of a service, such as `127.0.0.1:40123`. */
  address(service: Service): string;
  /** The text with the addresses of the services replaced by those on this machine. */
  here(text: string): string;
  /** Starts everything but the gateways. */
  start(): Promise<void>;
  /** Kills the primary. */
  losePrimary(): Promise<void>;
  close(): Promise<void>;
}

export async function createLocalCluster(): Promise<LocalCluster> {
  const { owner } = findPostgresPrograms();
  const folder = await mkdtemp(join(tmpdir(), 'dovetail-cluster-'));
  await chmod(folder, 0o755);
  const addresses = new Map<string, string>();
  for (const service of Object.keys(ports)) addresses.set(service, `127.0.0.1:${await freePort()}`);
  const databasePort = await freePort();
  const processes: ChildProcess[] = [];
  let primary: ChildProcess | undefined;
  const address = (service: Service) => addresses.get(service) ?? '';
  const portOf = (service: Service) => address(service).split(':')[1] ?? '';
  const here = (text: string) =>
    Object.entries(ports).reduce(
      (replaced, [service, port]) => replaced.replaceAll(`${service}:${port}`, addresses.get(service) ?? ''),
      text.replaceAll(database, `127.0.0.1:${databasePort}`),
    );

  /** Copies one of the files with these replacements. The file must contain each text that is to be replaced. */
  async function place(
    name: string,
    replacements: Readonly<Record<string, string>>,
    into = folder,
  ): Promise<string> {
    let text = await readFile(join('ops/cluster', name), 'utf8');
    for (const [original, replacement] of Object.entries(replacements)) {
      if (!text.includes(original)) throw new Error(`${name} does not contain: ${original}`);
      text = text.replaceAll(original, replacement);
    }
    const file = join(into, name);
    await writeFile(file, here(text));
    return file;
  }

  /** Creates a folder for a service, owned by the user that runs it. */
  async function makeFolder(service: Service): Promise<string> {
    const own = join(folder, service);
    await mkdir(own);
    if (owner.uid !== undefined && owner.gid !== undefined) await chown(own, owner.uid, owner.gid);
    return own;
  }

  function run(
    program: string,
    args: readonly string[],
    cwd: string,
    env: Readonly<Record<string, string>>,
    user = owner,
  ) {
    const child = spawn(program, args, {
      ...user,
      cwd,
      env: { ...process.env, PATH: `${postgresFolder}:${process.env.PATH}`, LC_ALL: 'C', ...env },
      stdio: ['ignore', 'ignore', 'pipe'],
      detached: true,
    });
    processes.push(child);
    let output = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-4_000);
    });
    child.once('exit', (code) => {
      if (code) output += ` (${program} exited with ${code})`;
    });
    return { child, output: () => output };
  }

  /** Waits until the service accepts connections. */
  async function untilListening(service: Service, { child, output }: ReturnType<typeof run>): Promise<void> {
    const until = Date.now() + 30_000;
    while (Date.now() < until && child.exitCode === null) {
      const socket = connect(Number(portOf(service)), '127.0.0.1');
      const isConnected = await once(socket, 'connect').then(
        () => true,
        () => false,
      );
      socket.destroy();
      if (isConnected) return;
      await sleep(50);
    }
    throw new Error(`${service} did not start: ${output()}`);
  }

  const environment = (service: Service, own: string) => ({
    PGDATA: join(own, 'data'),
    PGHOST: own,
    PGPORT: portOf(service),
    POSTGRES_PASSWORD: password,
  });

  /** Starts the primary as the Docker image does: until the script has run, the database accepts connections by a Unix socket only. */
  async function startPrimary(settings: string): Promise<void> {
    const own = await makeFolder('primary');
    const env = environment('primary', own);
    const programs = postgresFolder ?? '';
    const options = {
      ...owner,
      cwd: own,
      env: { ...process.env, ...env, PATH: `${programs}:${process.env.PATH}` },
    };
    const execute = promisify(execFile);
    const passwordFile = join(own, 'password');
    await writeFile(passwordFile, password);
    await execute(
      'initdb',
      [
        `--pwfile=${passwordFile}`,
        '--auth-local=trust',
        '--auth-host=scram-sha-256',
        '--username=postgres',
        '--no-sync',
        `--pgdata=${env.PGDATA}`,
      ],
      options,
    );
    const server = [
      '-D',
      env.PGDATA,
      '-c',
      `config_file=${settings}`,
      '-c',
      `unix_socket_directories=${own}`,
    ];
    await execute(
      'pg_ctl',
      [
        'start',
        '--wait',
        '--silent',
        '-D',
        env.PGDATA,
        '-l',
        join(own, 'log'),
        '-o',
        `${server.slice(2).join(' ')} -c listen_addresses=''`,
      ],
      options,
    );
    await execute('sh', [await place('primary.sh', {}, folder)], options);
    await execute('pg_ctl', ['stop', '--wait', '--silent', '--mode=fast', '-D', env.PGDATA], options);
    const running = run('postgres', server, own, env);
    primary = running.child;
    await untilListening('primary', running);
  }

  async function startStandby(service: 'standby-1' | 'standby-2', settings: string): Promise<void> {
    const own = await makeFolder(service);
    const script = await place(
      'standby.sh',
      {
        '--host primary --port 5432': `--host 127.0.0.1 --port ${portOf('primary')}`,
        '/etc/postgresql/postgresql.conf': `${settings} -c unix_socket_directories=${own}`,
      },
      own,
    );
    const env = { ...environment(service, own), STANDBY: service.replace('-', '_') };
    await untilListening(service, run('sh', [script], own, env));
  }

  async function startPooler(): Promise<void> {
    const own = await makeFolder('pgbouncer');
    const users = join(own, 'userlist.txt');
    const [major = 0, minor = 0] = (pgbouncerVersion ?? '').split('.').map(Number);
    const settings = await place(
      'pgbouncer.ini',
      {
        'host=balancer port=5432': `host=127.0.0.1 port=${databasePort}`,
        'listen_addr = *': 'listen_addr = 127.0.0.1',
        'listen_port = 6432': `listen_port = ${portOf('pgbouncer')}`,
        '/tmp/userlist.txt': users,
        // Older versions do not know this setting, and do not start with it.
        ...(major === 1 && minor < 21 && { 'max_prepared_statements = 200': '' }),
      },
      own,
    );
    const script = await place(
      'pgbouncer.sh',
      { '/tmp/userlist.txt': users, '/etc/pgbouncer/pgbouncer.ini': settings },
      own,
    );
    await untilListening('pgbouncer', run('sh', [script], own, { POSTGRES_PASSWORD: password }));
  }

  async function startBalancer(): Promise<void> {
    const settings = await place('haproxy.cfg', {
      'bind :4000': `bind ${address('balancer')}`,
      'bind :5432': `bind 127.0.0.1:${databasePort}`,
    });
    await untilListening('balancer', run(haproxy, ['-db', '-f', settings], folder, {}, {}));
  }

  return {
    address,
    here,
    async start() {
      const settings = await place('postgresql.conf', {});
      await startPrimary(settings);
      await Promise.all([
        startStandby('standby-1', settings),
        startStandby('standby-2', settings),
        startBalancer(),
        startPooler(),
      ]);
    },
    async losePrimary() {
      if (primary) await end(primary);
    },
    async close() {
      await Promise.all(processes.map(end));
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Kills a process with all processes that it has started. */
async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const ended = once(child, 'exit');
  process.kill(-child.pid, 'SIGKILL');
  await ended;
}
