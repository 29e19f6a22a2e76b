/**
 * A standby, with reconnection. After the check that it is a standby of the primary, its replayed position only grows, until one of
 * its connections breaks or its state shows that it is no standby any more.
 */

import pg from 'pg';
import { errorText, SetupError } from '../../errors.ts';
import { hostPortText, serverOf } from '../connection.ts';
import { connectTo, type PoolLimits, sessionSettingsOf } from '../database.ts';
import { createPositionReader, type Position, type PrimaryPosition, parsePosition } from '../logPosition.ts';
import { type ReadCheck, type Sql, statementName } from '../reader/sql.ts';
import { isPooled } from '../session.ts';
import { createSharedRuns, pause } from '../waiting.ts';

/** The cluster and the database, which a standby shares with its primary, and the role of the connection. */
interface Identity {
  readonly system: string;
  readonly database: string;
  readonly role: string;
}

const identityStatement = `SELECT (SELECT system_identifier::text FROM pg_control_system()) AS system,
  (SELECT oid::text FROM pg_database WHERE datname = current_database()) AS database, current_user::text AS role`;

export type Standby = Awaited<ReturnType<typeof connectStandby>>;

export interface StandbyOptions {
  readonly url: string;
  readonly bounds: PoolLimits;
  readonly primary: Primary;
}

export type Primary = Awaited<ReturnType<typeof readPrimary>>;

/** Reads the identity with which standbys are compared. @throws {SetupError} if the primary does not give it. */
export async function readPrimary(sql: Pick<Sql, 'run'>) {
  const [identity] = await sql.run<Identity>(identityStatement, []);
  if (!identity) throw new SetupError('DATABASE_URL names a server that does not say which one it is.');
  const read = createPositionReader(sql);
  const primary = {
    identity,
    /** The timeline that it writes, as it was last read. */
    timeline: 0,
    async take(): Promise<PrimaryPosition> {
      const taken = await read();
      primary.timeline = taken.timeline;
      return taken;
    },
  };
  return primary;
}

/** How long, in milliseconds, a standby may take to connect, to give its state, or to release a lock. */
const stateTimeout = 1_000;

/** The timeline is that of the log that it receives, which is known before it replays any of that log. */
const stateStatement = `SELECT json_build_object('recovering', pg_is_in_recovery(), 'replayed', pg_last_wal_replay_lsn(),
  'timeline', received_tli, 'receiving', pid IS NOT NULL, 'started', pg_postmaster_start_time())
  AS state FROM (SELECT) one LEFT JOIN pg_stat_wal_receiver ON true`;

interface State {
  readonly recovering: boolean;
  readonly replayed: string | null;
  readonly timeline: number | null;
  readonly receiving: boolean;
  readonly started: string;
}

/**
 * Connects to a standby.
 * @throws when it cannot be reached, or is not, or cannot be recognized as, a standby of the primary.
 */
async function connectStandby({ url, bounds, primary }: StandbyOptions) {
  const health = createHealth(primary);
  const { watcher, pool, sql, lose, lost } = openConnections(url, bounds, {
    statement: { text: stateStatement, values: [], columns: [{ name: 'state', read: JSON.parse }] },
    // The rows have the column of the statement.
    check: ([row]) => health.note(row as { state: State }),
  });
  async function refresh(): Promise<void> {
    const { rows } = await watcher.query<{ state: State }>({ name: 'state', text: stateStatement });
    // After a promotion the primary has a new timeline.
    if (rows[0]?.state.timeline !== primary.timeline) await primary.take();
    health.note(rows[0]);
  }
  try {
    await watcher.connect();
    await identify(watcher, primary.identity);
    const { position: least } = await primary.take();
    await refresh();
    return {
      sql,
      /** Whether it has replayed up to the position, and at least up to that of the primary at its connection. */
      hasReplayed: (position: Position) => health.replayed() >= position && health.replayed() >= least,
      /** When it was lost, by `performance.now()`; undefined while it is healthy. */
      lostAt: () => lost()?.at,
      /** Whether as many reads wait for a connection as there are connections. */
      isBusy: () => pool.waitingCount >= bounds.connections,
      /** Reads its state. It is lost if it is no longer healthy. */
      refresh: createSharedRuns(() => refresh().catch(lose)).begin,
      /** Must be called with the error when a read failed there. */
      failed(error: unknown): void {
        if (!isOfStatement(error)) lose(error);
      },
      /** Closes it, and returns the reason why it was lost. */
      close: () => lose(new Error('it was closed')),
    };
  } catch (error) {
    lose(error);
    throw error;
  }
}

/**
 * Makes the connections to a standby: one that watches it, and those that reads use. When one is lost, all are closed, so that
 * no read waits for a server that is silent.
 */
function openConnections(url: string, bounds: PoolLimits, readCheck: ReadCheck) {
  const server = { ...serverOf(url), connectionTimeoutMillis: stateTimeout };
  const watcher = new pg.Client({ ...server, query_timeout: stateTimeout });
  const clients = new Set([watcher]);
  let lost: { readonly at: number; readonly why: string } | undefined;
  // Replay holds a lock until it comes to the end of the transaction that took it, and it may be behind, or paused.
  const longestLocked = Math.min(stateTimeout, bounds.statement / 2);
  const makeSettings = sessionSettingsOf(bounds, { lock_timeout: String(longestLocked) });
  const { pool, sql } = connectTo(server, {
    bounds,
    nameOf: statementName,
    readCheck,
    prepare(client) {
      // The pool makes clients of this class.
      const added = client as pg.Client;
      clients.add(added);
      added.once('end', () => clients.delete(added));
      if (lost) added.connection.stream.destroy();
      return makeSettings(client);
    },
  });
  /** @returns why they were lost first. */
  function lose(error: unknown): string {
    if (lost) return lost.why;
    lost = { at: performance.now(), why: errorText(error) };
    for (const { connection } of clients) connection.stream.destroy();
    pool.end().catch(() => {});
    return lost.why;
  }
  watcher.on('error', lose).once('end', () => lose(new Error('it has ended the connection')));
  pool.on('error', lose);
  return { watcher, pool, sql, lose, lost: () => lost };
}

/** Checks each state that was read, and remembers the replayed position. */
function createHealth(primary: Primary) {
  let replayed: Position = 0n;
  let started: string | undefined;
  return {
    replayed: () => replayed,
    note(row: { readonly state: State } | undefined): void {
      if (!row) throw new Error('it does not say how it is');
      const { state } = row;
      started ??= state.started;
      if (started !== state.started) throw new Error('its address leads to another server by now');
      if (!state.recovering) throw new Error('it is no standby, or no longer: it takes writes of its own');
      if (!state.receiving) throw new Error('it receives nothing from the primary');
      if (state.timeline === null)
        throw new Error(
          'the role may not see what it receives: GRANT pg_read_all_stats to it, or receiving has only begun',
        );
      if (state.timeline !== primary.timeline)
        throw new Error(`it follows timeline ${state.timeline}, and the primary writes ${primary.timeline}`);
      const position = parsePosition(state.replayed ?? '');
      if (position !== undefined && position > replayed) replayed = position;
    },
  };
}

/**
 * Whether only the statement failed, and the server works: recovery has cancelled it, or it took too long, for which `pg`
 * has no code. The watcher notices a server that does not respond at all. A server that holds a lock for long is not used: its
 * replay has paused within a transaction.
 */
function isOfStatement(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return !/^(57P0|08|55P03)/.test(error.code ?? '');
  return error instanceof Error && /timeout/i.test(error.message);
}

/** Checks that it is a copy of the primary. */
async function identify(watcher: pg.Client, { system, database, role }: Identity): Promise<void> {
  if (await isPooled(watcher))
    throw new Error('a pooler stands before it, which may lead anywhere: name the standby itself');
  // All servers have the same roles. That of the primary has to see what sessions of others wait for.
  const { rows } = await watcher.query<Identity & { sees: boolean }>(
    `${identityStatement},
       EXISTS (SELECT FROM pg_roles WHERE rolname = $1 AND pg_has_role(oid, 'pg_read_all_stats', 'USAGE')) AS sees`,
    [role],
  );
  const [found] = rows;
  if (found?.system !== system || found.database !== database)
    throw new Error('it is no copy of the database that DATABASE_URL names');
  if (!found.sees)
    throw new Error(
      `the role ${JSON.stringify(role)} of DATABASE_URL may not see which commits wait for standbys: GRANT pg_read_all_stats to it`,
    );
}

/** The pauses before a reconnection, and between polls of its state, in milliseconds. */
const reconnectPause = 1_000;
const heartbeat = 500;

export type StandbyConnection = ReturnType<typeof keepConnected>;

/** Called with the state of a standby, in words, whenever it has changed. */
export type OnStandbyChange = (name: string, status: string, isReadFrom: boolean) => void;

/** Keeps a standby connected, and polls its state, so that its loss is noticed soon even without reads. */
export function keepConnected(options: StandbyOptions, onChange: OnStandbyChange) {
  // A URL may have host and port in its query, or leave them out.
  const name = hostPortText(new pg.Client(serverOf(options.url)));
  const closing = new AbortController();
  const { signal } = closing;
  let current: Standby | undefined;
  let status = '';

  function setStatus(now: string, isReadFrom = false): void {
    if (now !== status && !signal.aborted) onChange(name, now, isReadFrom);
    status = now;
  }

  /** Connects, and returns why it is no longer connected. */
  async function connectOnce(): Promise<string> {
    current = await connectStandby(options);
    setStatus('well', true);
    while (current.lostAt() === undefined && (await pause(heartbeat, signal))) await current.refresh();
    return current.close();
  }

  async function reconnect(): Promise<void> {
    do setStatus(await connectOnce().catch(errorText));
    while (await pause(reconnectPause, signal));
  }

  const running = reconnect();
  return {
    /** Its host and port, without a password. */
    name,
    /** The standby, if it is connected and healthy. */
    current: () => (current?.lostAt() === undefined ? current : undefined),
    /** When the last standby that was healthy was lost; undefined if none was. */
    lostAt: () => current?.lostAt(),
    /** Its state in words, for logs and metrics. */
    status: () => status,
    async close() {
      closing.abort();
      await running;
    },
  };
}
