/**
 * A standby for as long as it is connected: from the check that it is a standby of the primary until a connection to it
 * breaks, or its state shows that it is one no more. During that time its replayed position only grows.
 */

import pg from 'pg';
import { errorText, SetupError } from '../../errors.ts';
import { hostPortText, serverOf } from '../connection/client.ts';
import { limitSilence, type PoolLimits, poolLimits, sessionSettingsOf } from '../database.ts';
import {
  createPositionReader,
  type Position,
  type PrimaryPositionReader,
  parsePosition,
} from '../logPosition.ts';
import { isPooled } from '../pooler.ts';
import { statementName } from '../reader/batch.ts';
import { createSql, type Sql } from '../reader/sql.ts';
import type { RowStatement } from '../reader/statement.ts';
import { createSharedRuns } from '../sharedRuns.ts';
import { resultWithin } from '../waiting.ts';

/** The database cluster and the database, which a standby has in common with its primary, and the role of the connection. */
interface Identity {
  readonly system: string;
  readonly database: string;
  readonly role: string;
}

const identityStatement = `SELECT (SELECT system_identifier::text FROM pg_control_system()) AS system,
  (SELECT oid::text FROM pg_database WHERE datname = current_database()) AS database, current_user::text AS role`;

/** Why a standby cannot be read from, in words for the operator. */
export class StandbyUnusable extends Error {
  override name = 'StandbyUnusable';
}

export interface Standby {
  /** Its host and port. */
  readonly name: string;
  readonly sql: Sql;
  /** The position up to which it is known to have replayed the log. */
  readonly replayed: Position;
  readonly isHealthy: boolean;
  /** Whether as many reads wait for a connection as there are connections. */
  readonly isBusy: boolean;
  readonly connections: number;
  /**
   * Reads its state. Returns the first transaction id that may not have ended there.
   * @throws when it is no longer healthy.
   */
  refresh(): Promise<bigint>;
  /** Which of the transactions it shows as committed. */
  committedOf(transactions: readonly string[]): Promise<string[]>;
  /** Must be called with the error when a read failed there. */
  failed(error: unknown): void;
  /** Resolves with the reason when it is no longer healthy. */
  readonly end: Promise<Error>;
  close(): void;
}

/** The primary, with which standbys are compared. */
export interface Primary {
  readonly take: PrimaryPositionReader;
  /** The timeline that it writes, as it was last read. */
  timeline(): number | undefined;
  readonly identity: Identity;
}

export interface StandbyOptions {
  readonly url: string;
  readonly bounds: PoolLimits;
  readonly primary: Primary;
}

/** Reads what standbys are compared with. @throws {SetupError} when the primary does not say which server it is. */
export async function readPrimary(sql: Pick<Sql, 'run'>): Promise<Primary> {
  const [identity] = await sql.run<Identity>(identityStatement, []);
  if (!identity) throw new SetupError('DATABASE_URL names a server that does not say which one it is.');
  const read = createPositionReader(sql);
  let timeline: number | undefined;
  return {
    identity,
    timeline: () => timeline,
    async take() {
      const taken = await read();
      timeline = taken.timeline;
      return taken;
    },
  };
}

/** The host and port that `pg` connects to: a URL may have them in its query, or leave them out. */
export const standbyName = (url: string): string => hostPortText(new pg.Client(serverOf(url)));

/** How long, in milliseconds, a standby may take to connect, to give its state, or to release a lock. */
const stateTimeout = 1_000;

/** The timeline is that of the log that it receives, which is known before it replays any of that log. */
const stateStatement = `SELECT pg_is_in_recovery() AS recovering, pg_last_wal_replay_lsn()::text AS replayed,
  received_tli AS timeline, pid IS NOT NULL AS receiving, pg_snapshot_xmax(pg_current_snapshot())::text AS bound
  FROM (SELECT) one LEFT JOIN pg_stat_wal_receiver ON true`;

interface State {
  readonly recovering: boolean;
  readonly replayed: string | null;
  readonly timeline: number | null;
  readonly receiving: boolean;
  readonly bound: string;
}

const text = (value: string) => value;
const flag = (value: string) => value === 't';

/** The same statement, to be sent behind each read: it proves that the read came from a healthy standby. */
const state: RowStatement = {
  text: stateStatement,
  values: [],
  columns: [
    { name: 'recovering', read: flag },
    { name: 'replayed', read: text },
    { name: 'timeline', read: Number },
    { name: 'receiving', read: flag },
    { name: 'bound', read: text },
  ],
};

/**
 * Connects to a standby.
 * @throws when it cannot be reached; {StandbyUnusable} when it is not, or cannot be recognized as, a standby of the primary.
 */
export async function connectStandby(options: StandbyOptions): Promise<Standby> {
  const { url, primary } = options;
  const watcher = new pg.Client({
    ...serverOf(url),
    connectionTimeoutMillis: stateTimeout,
    query_timeout: stateTimeout,
  });
  const connections = createConnectionGroup(watcher);
  watcher
    .on('error', connections.lose)
    .once('end', () => connections.lose(new Error('it has ended the connection')));
  try {
    await watcher.connect();
    const began = await identify(watcher, primary.identity);
    const health = createHealth(primary);
    await health.note(await stateOf(watcher));
    const pool = openPool(options, began, connections);
    const refresh = createSharedRuns(async () => {
      try {
        const found = await stateOf(watcher);
        await health.note(found);
        return BigInt(found.bound);
      } catch (error) {
        connections.lose(error);
        throw error;
      }
    }).begin;
    return {
      name: hostPortText(watcher),
      // The rows have the columns of the statement above.
      sql: createSql(pool, statementName, {
        statement: state,
        check: ([row]) => health.noteNow(row as unknown as State),
      }),
      get replayed() {
        return health.replayed();
      },
      get isHealthy() {
        return connections.isAlive();
      },
      get isBusy() {
        return pool.waitingCount >= pool.options.max;
      },
      get connections() {
        return pool.totalCount;
      },
      refresh,
      committedOf: (transactions) => committedOf(watcher, transactions),
      failed(error) {
        if (error instanceof StandbyUnusable || !isOfStatement(error)) connections.lose(error);
      },
      end: connections.end,
      close: () => connections.lose(new Error('it was closed')),
    };
  } catch (error) {
    connections.lose(error);
    throw error;
  }
}

/**
 * Whether only the statement failed, and the server works: recovery has cancelled it, or it took too long, for which `pg`
 * has no code. A server that does not respond at all is noticed by the watcher. One that holds a lock for long is not used: it
 * has paused at a transaction of which it has not replayed the end.
 */
function isOfStatement(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return !/^(57P0|08|55P03)/.test(error.code ?? '');
  return error instanceof Error && /timeout/i.test(error.message);
}

async function stateOf(watcher: pg.Client): Promise<State> {
  const { rows } = await watcher.query<State>({ name: 'state', text: stateStatement });
  const [found] = rows;
  if (!found) throw new Error('it does not say how it is');
  return found;
}

async function committedOf(watcher: pg.Client, transactions: readonly string[]): Promise<string[]> {
  const { rows } = await watcher.query<{ id: string }>(
    `SELECT id FROM unnest($1::text[]) AS id WHERE id::xid8 < pg_snapshot_xmax(pg_current_snapshot())
       AND pg_xact_status(id::xid8) = 'committed'`,
    [transactions],
  );
  return rows.map(({ id }) => id);
}

/** Checks that it is a copy of the primary. @returns when the server was started. */
async function identify(watcher: pg.Client, { system, database, role }: Identity): Promise<string> {
  if (await isPooled(watcher))
    throw new StandbyUnusable('a pooler stands before it, which may lead anywhere: name the standby itself');
  // All servers have the same roles. That of the primary has to see what sessions of others wait for (`catchUp.ts`).
  const { rows } = await watcher.query<Identity & { began: string; sees: boolean }>(
    `${identityStatement}, pg_postmaster_start_time()::text AS began,
       EXISTS (SELECT FROM pg_roles WHERE rolname = $1 AND pg_has_role(oid, 'pg_read_all_stats', 'USAGE')) AS sees`,
    [role],
  );
  const [found] = rows;
  if (found?.system !== system || found.database !== database)
    throw new StandbyUnusable('it is no copy of the database that DATABASE_URL names');
  if (!found.sees)
    throw new StandbyUnusable(
      `the role ${JSON.stringify(role)} of DATABASE_URL may not see which commits wait for standbys: GRANT pg_read_all_stats to it`,
    );
  return found.began;
}

/** Checks each state that was read, and remembers the replayed position. */
function createHealth({ take, timeline: expected }: Primary) {
  let replayed: Position = 0n;

  function noteNow({ recovering, replayed: now, timeline, receiving }: State): void {
    if (!recovering) throw new StandbyUnusable('it is no standby, or no longer: it takes writes of its own');
    if (!receiving) throw new StandbyUnusable('it receives nothing from the primary');
    if (timeline === null)
      throw new StandbyUnusable(
        'the role may not see what it receives: GRANT pg_read_all_stats to it, or receiving has only begun',
      );
    if (timeline !== expected())
      throw new StandbyUnusable(`it follows timeline ${timeline}, and the primary writes ${expected()}`);
    const position = now === null ? undefined : parsePosition(now);
    if (position !== undefined && position > replayed) replayed = position;
  }

  return {
    replayed: () => replayed,
    noteNow,
    async note(found: State): Promise<void> {
      // After a promotion, the primary writes a new timeline.
      if (found.timeline !== expected())
        await take().catch((error: unknown) => {
          throw new Error(`the primary cannot be asked for its timeline: ${errorText(error)}`, {
            cause: error,
          });
        });
      noteNow(found);
    },
  };
}

/** Connections for reads. Each is checked to lead to the server that the watcher is connected to. */
function openPool({ url, bounds }: StandbyOptions, began: string, connections: ConnectionGroup): pg.Pool {
  // Replay holds a lock until it comes to the end of the transaction that took it, and it may be behind, or paused.
  const longestLocked = Math.min(stateTimeout, bounds.statement / 2);
  const makeSettings = sessionSettingsOf(bounds, { lock_timeout: String(longestLocked) });
  /** Makes the settings of a new connection. @returns when the server was started. */
  async function prepare(client: pg.ClientBase): Promise<string | undefined> {
    await makeSettings(client);
    const { rows } = await client.query<{ began: string }>(
      'SELECT pg_postmaster_start_time()::text AS began',
    );
    return rows[0]?.began;
  }
  const pool = new pg.Pool({
    ...serverOf(url),
    ...poolLimits(bounds),
    connectionTimeoutMillis: stateTimeout,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    async onConnect(client) {
      // A read waits for this, so it may not take as long as a statement may.
      const found = await resultWithin(stateTimeout, prepare(client));
      if (found === undefined) throw new StandbyUnusable('a new connection to it does not work');
      if (found !== began) throw new StandbyUnusable('its address leads to another server by now');
      limitSilence(client, bounds);
    },
  });
  pool.on('error', connections.lose);
  pool.on('connect', connections.add);
  connections.end.then(() => pool.end()).catch(() => {});
  return pool;
}

type ConnectionGroup = ReturnType<typeof createConnectionGroup>;

/** All connections to the standby. When one is lost, all are closed, so that no read waits for a server that is silent. */
function createConnectionGroup(watcher: pg.Client) {
  let isAlive = true;
  let settle = (_: Error) => {};
  const end = new Promise<Error>((resolve) => {
    settle = resolve;
  });
  const clients = new Set<pg.Client>([watcher]);
  return {
    end,
    isAlive: () => isAlive,
    add(client: pg.Client): void {
      clients.add(client);
      client.once('end', () => clients.delete(client));
      if (!isAlive) client.connection.stream.destroy();
    },
    lose(reason: unknown): void {
      if (!isAlive) return;
      isAlive = false;
      for (const client of clients) client.connection.stream.destroy();
      settle(reason instanceof Error ? reason : new Error(String(reason)));
    },
  };
}
