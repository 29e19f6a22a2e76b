/** A primary with streaming standbys. Each server can be paused, promoted, stopped and cut off. */

import { execFile } from 'node:child_process';
import { appendFile, chown, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { freePort } from './freePort.ts';
import {
  createDatabase,
  createFolder,
  initialiseData,
  queryOnce,
  type RunningServer,
  runServer,
  type StopMode,
  serverUrl,
} from './postgres.ts';
import { findPostgresPrograms } from './postgresPrograms.ts';
import { openTcpProxy, type TcpProxy } from './tcpProxy.ts';
import { until } from './until.ts';

export type Cluster = Awaited<ReturnType<typeof startCluster>>;
export type ClusterServer = Member['server'];
export type Standby = Awaited<ReturnType<typeof asStandby>>;
type Member = Awaited<ReturnType<typeof openMember>>;

/** Settings for replication: a standby reconnects soon, and enough of the log stays for it. */
const forReplication = {
  wal_level: 'logical',
  wal_keep_size: '256MB',
  wal_retrieve_retry_interval: '100ms',
  wal_receiver_status_interval: '1s',
  max_connections: '100',
};

/** @param settings of every server. Use `set` for `synchronous_standby_names`, once there are standbys. */
export async function startCluster(count = 2, settings: Readonly<Record<string, string>> = {}) {
  const members: Member[] = [];
  const stop = async () => {
    await Promise.all(members.map((member) => member.remove()));
  };
  try {
    const folder = await createFolder();
    await initialiseData(folder, { ...forReplication, ...settings });
    const first = await openMember('primary', folder);
    members.push(first);
    await first.server.start();
    const standbys: Standby[] = [];
    const addStandby = async (of: ClusterServer = first.server) => {
      const source = members.find(({ server }) => server.port === of.port) ?? first;
      const member = await copyMember(`standby${members.length}`, source);
      members.push(member);
      const standby = await asStandby(member, of);
      standbys.push(standby);
      return standby;
    };
    for (let made = 0; made < count; made++) await addStandby();
    return {
      primary: first.server,
      standbys,
      createDatabase: (name: string) => createDatabase(first.server.url, name),
      /** Adds a standby of any server that takes writes. */
      addStandby,
      /** Waits until the standbys, by default all, have replayed what the primary has written. */
      isReplayed: (which: readonly Standby[] = standbys) => haveAll('replay', first.server, which),
      /** Waits until the standbys have received what the server has written. */
      isReceived: (which: readonly Standby[]) => haveAll('receive', first.server, which),
      /** Stops and deletes everything. */
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function openMember(name: string, folder: string) {
  const port = await freePort();
  const url = serverUrl(port);
  const lines: TcpProxy[] = [];
  let running: RunningServer | undefined;
  /** Runs statements, given as one string, as the superuser and not through a proxy. */
  const query = <Row extends pg.QueryResultRow>(sql: string, database = 'postgres') =>
    queryOnce<Row>(`${url}/${database}`, sql);
  const server = {
    /** The name of a standby in `synchronous_standby_names`. */
    name,
    port,
    /** The address of the server, to which `/` and the name of a database are added. */
    url,
    query,
    /** Opens a proxy in front of a database of the server. It is closed with the cluster. */
    async openTcpProxy(database: string) {
      // The proxy uses this pool only in `terminate`.
      const pool = new pg.Pool({ connectionString: `${url}/${database}`, max: 1, allowExitOnIdle: true });
      pool.on('error', () => {});
      const line = await openTcpProxy({ pool });
      lines.push(line);
      return line;
    },
    /** Changes a setting of the server without a restart. */
    async set(setting: string, value: string) {
      await query(`ALTER SYSTEM SET ${setting} = ${pg.escapeLiteral(value)}`);
      await query('SELECT pg_reload_conf()');
    },
    /** The end of the server's log since its start; with `log_statement` it has the statements. */
    log: () => running?.log() ?? '',
    async stop(mode: StopMode) {
      await running?.stop(mode);
      running = undefined;
    },
    async start() {
      running ??= await runServer(folder, port);
    },
  };
  return {
    folder,
    server,
    lines,
    async remove() {
      for (const line of lines) await line.close();
      await server.stop('immediate');
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Copies a running member as `pg_basebackup` does. The package from npm does not have that program. */
async function copyMember(name: string, source: Member) {
  const folder = await createFolder();
  const data = join(folder, 'data');
  const { owner } = findPostgresPrograms();
  const session = new pg.Client({ connectionString: `${source.server.url}/postgres` });
  await session.connect();
  try {
    await session.query('SELECT pg_backup_start($1, fast => true)', [name]);
    // Files may disappear during the copy. Replay restores from the log what it needs of them.
    await promisify(execFile)('cp', ['-a', join(source.folder, 'data'), data]).catch((error: unknown) => {
      if (!/No such file/.test(String(error))) throw error;
    });
    const { rows } = await session.query<{ labelfile: string }>(
      'SELECT labelfile FROM pg_backup_stop(wait_for_archive => false)',
    );
    await writeFile(join(data, 'backup_label'), rows[0]?.labelfile ?? '');
  } finally {
    await session.end();
  }
  // Copies the log again, since it has to reach to the end of the copy.
  await promisify(execFile)('cp', ['-a', join(source.folder, 'data/pg_wal/.'), join(data, 'pg_wal')]).catch(
    () => {},
  );
  for (const name of ['postmaster.pid', 'postmaster.opts', 'pg_replslot', 'standby.signal'])
    await rm(join(data, name), { recursive: true, force: true });
  await mkdir(join(data, 'pg_replslot'), { mode: 0o700 });
  await writeFile(join(data, 'standby.signal'), '');
  for (const file of ['backup_label', 'standby.signal', 'pg_replslot'])
    if (owner.uid !== undefined && owner.gid !== undefined)
      await chown(join(data, file), owner.uid, owner.gid);
  return openMember(name, folder);
}

/** Starts the copy as a standby, which streams through a proxy of its own. */
async function asStandby(member: Member, of: ClusterServer) {
  const upstream = await of.openTcpProxy('postgres');
  const { port, username, password } = new URL(upstream.url);
  const conninfo = `host=127.0.0.1 port=${port} user=${username} password=${password} application_name=${member.server.name}`;
  await appendFile(
    join(member.folder, 'data/postgresql.auto.conf'),
    `primary_conninfo = '${conninfo}'\nsynchronous_standby_names = ''\n`,
  );
  const { server } = member;
  await server.start();
  return {
    ...server,
    /** The proxy through which the standby streams. While it holds, nothing more arrives. */
    upstream,
    async pauseReplay() {
      await server.query('SELECT pg_wal_replay_pause()');
      // The pause begins later than the call returns: a commit in between may still be replayed.
      await until(`${server.name} pauses`, async () => {
        const [row] = await server.query<{ state: string }>(
          'SELECT pg_get_wal_replay_pause_state() AS state',
        );
        return row?.state === 'paused';
      });
    },
    async resumeReplay() {
      await server.query('SELECT pg_wal_replay_resume()');
    },
    /** Makes the standby a primary, on a new timeline. */
    async promote() {
      await server.query('SELECT pg_promote()');
    },
  };
}

/**
 * Waits until the standbys have received, or replayed, what the server has written. The server sends only what is on its
 * disk. What a transaction has written that goes on is there after the next commit, or up to 15 seconds later, so this
 * statement commits something.
 */
async function haveAll(
  what: 'receive' | 'replay',
  from: ClusterServer,
  standbys: readonly Standby[],
): Promise<void> {
  const [written] = await from.query<{ position: string }>(
    // Not waiting for synchronous standbys, which may be those that are waited for here.
    `SELECT pg_current_wal_insert_lsn() AS position, pg_current_xact_id(), set_config('synchronous_commit', 'local', true)`,
  );
  if (!written) throw new Error(`${from.name} does not say where it is`);
  for (const standby of standbys)
    await until(`the ${what} of ${standby.name} has come to ${written.position}`, async () => {
      const [row] = await standby.query<{ isThere: boolean }>(
        `SELECT pg_last_wal_${what}_lsn() >= '${written.position}' AS "isThere"`,
      );
      return row?.isThere === true;
    });
}
