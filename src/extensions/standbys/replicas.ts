/**
 * Reads from standbys. One rule: a viewer reads from a standby that has replayed every change of the viewer's data that this
 * gateway knows, or else from the primary. Promises that no viewer sees older data than the primary had shown before, and that a
 * silent or lost standby delays no read for long. To replace it: read everything from the primary.
 *
 * Why the response cache may store a response of a standby: it stores the response under the version of the viewer's data at which
 * the computation began. A change first raises that version and the position that a standby needs; only then do other parts hear
 * of it. So a computation reads from a server that shows every change in its version. A later change raises the version, and
 * so invalidates the response.
 *
 * Why a viewer never goes back: each viewer has one standby. Its position only grows while it is connected, and it is used again only
 * when it has replayed what the primary has. After a read on the primary, a viewer reads from the standby only when it has replayed
 * the position after that read. From the standby to the primary there is one exception: a commit that still waits for a synchronous
 * standby may be shown by another standby, and is shown by the primary only once it is acknowledged.
 */

import { Socket } from 'node:net';
import { LRUCache } from 'lru-cache';
import pg from 'pg';
import { hostPortText, serverOf } from '../../database/connection.ts';
import { connectTo, type PoolLimits, sessionSetUp } from '../../database/database.ts';
import type { ChangeFeed } from '../../database/feed/changeFeed.ts';
import { type ReadCheck, type Sql, statementName } from '../../database/reader/sql.ts';
import { isPooled } from '../../database/session.ts';
import { createSharedRuns, pause } from '../../database/waiting.ts';
import { errorText, SetupError } from '../../errors.ts';
import type { Guard, Metric, OperationSql } from '../../extensionPoints.ts';
import { atMost } from '../../http/lruLimit.ts';
import { maxViewers } from '../../http/responseCache.ts';
import { createPositionReader, type Position, type PrimaryPosition, parsePosition } from './logPosition.ts';

export type Replicas = Awaited<ReturnType<typeof openReplicas>>;

interface ReplicaOptions {
  readonly urls: readonly string[];
  readonly sql: Sql;
  readonly feed: ChangeFeed;
  readonly limits: PoolLimits;
  readonly onChange: OnStandbyChange;
}

/** @throws {SetupError} when the identity of the primary cannot be read. */
export async function openReplicas({ urls, sql, feed, limits, onChange }: ReplicaOptions) {
  const primary = await readPrimary(sql);
  const addresses = urls.map((url) => keepConnected(url, limits, primary, onChange));
  const viewers = trackViewers(feed, primary.take);
  const counts = { primary: 0, retried: 0 };
  return {
    /** The SQL interface of one operation of the viewer. Each viewer has one address; there is at least one. */
    sqlFor({ id: viewerId }: { readonly id: number }, guard: Guard) {
      const address = addresses[viewerId % addresses.length] as StandbyAddress;
      return createOperationSql(sql, { viewerId, address, guard }, viewers, counts);
    },
    /** Must be called before a change by the viewer, or one that the viewer knows, is acknowledged. */
    changed: viewers.noteChange,
    metrics: metricsOf(counts, addresses),
    counts,
    addresses,
    async close() {
      viewers.close();
      await Promise.all(addresses.map(({ close }) => close()));
    },
  };
}

/** The statements that went to the primary, and those that went there after they had failed on a standby. */
interface ReadCounts {
  primary: number;
  retried: number;
}

/** Labels standbys with their addresses, as the settings have them. */
export function metricsOf(
  counts: ReadCounts,
  standbys: readonly Pick<StandbyAddress, 'name' | 'reads' | 'current'>[],
): readonly Metric[] {
  return [
    {
      name: 'database_reads_total',
      help: 'Statements of requests that read, by the server that they went to: primary, or a standby',
      read: () => [['primary', counts.primary], ...standbys.map(({ name, reads }) => [name, reads] as const)],
      label: 'server',
    },
    {
      name: 'standby_retries_total',
      help: 'Statements that failed on a standby, and went to the primary',
      read: () => counts.retried,
    },
    {
      name: 'standby_up',
      help: 'Whether the standby is read from (1)',
      read: () => standbys.map(({ name, current }) => [name, Number(current() !== undefined)] as const),
      label: 'server',
      aggregator: 'min',
    },
  ];
}

/** Whose operation it is, and where it reads. */
interface OperationPlace {
  readonly viewerId: number;
  readonly address: StandbyAddress;
  readonly guard: Guard;
}

/** The SQL interface of one operation: all its reads go to one server, which is the primary as soon as it has written. */
function createOperationSql(
  primary: Sql,
  { viewerId, address, guard }: OperationPlace,
  viewers: ReturnType<typeof trackViewers>,
  counts: ReadCounts,
): OperationSql {
  let choosing: Promise<Standby | undefined> | undefined;

  async function choose(): Promise<Standby | undefined> {
    const standby = address.current();
    if (!standby || standby.isBusy()) return undefined;
    const needed = await viewers.neededBy(viewerId);
    if (needed === undefined) return undefined;
    if (!standby.hasReplayed(needed)) await standby.refresh();
    return !standby.isLost() && standby.hasReplayed(needed) ? standby : undefined;
  }

  async function read<Rows>(use: (sql: Sql) => Promise<Rows>): Promise<Rows> {
    choosing ??= choose();
    const standby = await choosing;
    return standby ? guard(() => useStandby(standby, use)) : usePrimary(use);
  }

  async function useStandby<Rows>(standby: Standby, use: (sql: Sql) => Promise<Rows>): Promise<Rows> {
    try {
      const rows = await use(standby.sql);
      address.reads++;
      return rows;
    } catch (error) {
      standby.failed(error);
      // The server has cancelled it, mostly for a timeout. On the primary it would probably take as long.
      if (error instanceof pg.DatabaseError && error.code === '57014') throw error;
      counts.retried++;
      return usePrimary(use);
    }
  }

  async function usePrimary<Rows>(use: (sql: Sql) => Promise<Rows>, isWrite?: boolean): Promise<Rows> {
    // Later reads have to show what was written, or read here.
    choosing = Promise.resolve(undefined);
    try {
      return await guard(() => use(primary), isWrite);
    } finally {
      counts.primary++;
      viewers.noteChange(viewerId);
    }
  }

  return {
    findMany: (...given) => read((sql) => sql.findMany(...given)),
    count: (...given) => read((sql) => sql.count(...given)),
    run: <Row extends object>(...given: Parameters<Sql['run']>) => read((sql) => sql.run<Row>(...given)),
    write: <Row extends object>(...given: Parameters<Sql['write']>) =>
      usePrimary((sql) => sql.write<Row>(...given), true),
    onPrimary: (use) => usePrimary(use),
  };
}

/**
 * Knows for each viewer the position of the primary after the last change, the last write and the last read there; undefined if it
 * could not be read. A standby that has replayed it shows all of them. A position that is read where a change is made, before its
 * commit, would be too early.
 */
function trackViewers(feed: ChangeFeed, take: Primary['take']) {
  const viewers = new LRUCache<number, Promise<Position | undefined>>(atMost(maxViewers));

  const positionAfterNow = () =>
    take().then(
      ({ position }) => position,
      () => undefined,
    );

  function noteChange(viewerId: number): Promise<Position | undefined> {
    const needed = positionAfterNow();
    viewers.set(viewerId, needed);
    return needed;
  }
  const unsubscribe = feed.subscribe((change) => {
    if (change.kind === 'all') viewers.clear();
    else if (viewers.has(change.userId)) void noteChange(change.userId);
  });

  return {
    noteChange(viewerId: number): void {
      void noteChange(viewerId);
    },
    /** The position that a standby has to have replayed for the viewer; undefined if it cannot be read. */
    neededBy: (viewerId: number): Promise<Position | undefined> =>
      // Without a feed, changes may have been missed. A standby that has replayed the present position has them. An unknown viewer
      // may have seen any change.
      feed.listening ? (viewers.get(viewerId) ?? noteChange(viewerId)) : positionAfterNow(),
    close: unsubscribe,
  };
}

// A standby, with reconnection. After the check that it is a standby of the primary, its replayed position only grows, until one of
// its connections breaks or its state shows that it is no standby any more.

/** The cluster and the database, which a standby shares with its primary. */
interface Identity {
  readonly system: string;
  readonly database: string;
}

const identityStatement = `SELECT (SELECT system_identifier::text FROM pg_control_system()) AS system,
  (SELECT oid::text FROM pg_database WHERE datname = current_database()) AS database`;

type Standby = Awaited<ReturnType<typeof connectStandby>>;

type Primary = Awaited<ReturnType<typeof readPrimary>>;

/** Reads the identity with which standbys are compared. @throws {SetupError} if the primary does not give it. */
async function readPrimary(sql: Pick<Sql, 'run'>) {
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
async function connectStandby(url: string, limits: PoolLimits, primary: Primary) {
  const health = createHealth(primary);
  const { watcher, pool, sql, lose, lost } = openConnections(url, limits, {
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
      isLost: () => lost() !== undefined,
      /** Whether as many reads wait for a connection as there are connections. */
      isBusy: () => pool.waitingCount >= limits.connections,
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
function openConnections(url: string, limits: PoolLimits, readCheck: ReadCheck) {
  const sockets = new Set<Socket>();
  /** Why they were lost. */
  let lost: string | undefined;
  function openSocket(): Socket {
    const socket = new Socket();
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    return socket;
  }
  const server = { ...serverOf(url), connectionTimeoutMillis: stateTimeout, stream: openSocket };
  const watcher = new pg.Client({ ...server, query_timeout: stateTimeout });
  // Replay holds a lock until it comes to the end of the transaction that took it, and it may be behind, or paused.
  const longestLocked = Math.min(stateTimeout, limits.statement / 2);
  const setUp = sessionSetUp(limits, { lock_timeout: String(longestLocked) });
  const { pool, sql } = connectTo(server, {
    limits,
    nameOf: statementName,
    readCheck,
    prepare: setUp,
  });
  /** @returns why they were lost first. */
  function lose(error: unknown): string {
    if (lost !== undefined) return lost;
    lost = errorText(error);
    for (const socket of sockets) socket.destroy();
    pool.end().catch(() => {});
    return lost;
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
async function identify(watcher: pg.Client, { system, database }: Identity): Promise<void> {
  if (await isPooled(watcher))
    throw new Error('a pooler stands before it, which may lead anywhere: name the standby itself');
  const { rows } = await watcher.query<Identity>(identityStatement);
  if (rows[0]?.system !== system || rows[0].database !== database)
    throw new Error('it is no copy of the database that DATABASE_URL names');
}

/** The pauses before a reconnection, and between polls of its state, in milliseconds. */
const reconnectPause = 1_000;
const pollInterval = 500;

/** The address of a standby, which may be another server after a reconnection. */
type StandbyAddress = ReturnType<typeof keepConnected>;

/** Called with the state of a standby, in words, whenever it has changed. */
type OnStandbyChange = (name: string, status: string, isReadFrom: boolean) => void;

/** Keeps a standby connected, and polls its state, so that its loss is noticed soon even without reads. */
function keepConnected(url: string, limits: PoolLimits, primary: Primary, onChange: OnStandbyChange) {
  // A URL may have host and port in its query, or leave them out.
  const name = hostPortText(new pg.Client(serverOf(url)));
  const closing = new AbortController();
  const { signal } = closing;
  let current: Standby | undefined;
  let status = '';

  function setStatus(now: string): void {
    if (now !== status && !signal.aborted) onChange(name, now, now === 'well');
    status = now;
  }

  /** Connects, and returns why it is no longer connected. */
  async function connectOnce(): Promise<string> {
    current = await connectStandby(url, limits, primary);
    setStatus('well');
    while (!current.isLost() && (await pause(pollInterval, signal))) await current.refresh();
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
    reads: 0,
    /** The standby, if it is connected and healthy. */
    current: () => (current?.isLost() ? undefined : current),
    status: () => status,
    async close() {
      closing.abort();
      await running;
    },
  };
}
