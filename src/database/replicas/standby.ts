/**
 * A standby over one life of it: from when it was found to be a standby of our primary until a connection to it breaks, or
 * it is seen to be something else. What it has replayed only grows meanwhile, and is remembered for as long.
 */

import pg from 'pg';
import { serverOf } from '../connection/server.ts';
import type { PoolLimits } from '../database.ts';
import { clientTimeouts, sessionTimeouts } from '../database.ts';
import { inBatches } from '../inBatches.ts';
import { isPooled } from '../pooler.ts';
import { type Position, parsePosition } from '../position/lsn.ts';
import type { PrimaryPositionReader } from '../position/primary.ts';
import { createStatementNames, limitStatements } from '../preparedStatements.ts';
import { createSql, type Sql } from '../reader/sql.ts';
import type { RowStatement } from '../reader/statement.ts';

/** What a server is a copy of. */
export interface Identity {
  readonly system: string;
  readonly database: string;
}

export const identityStatement = `SELECT (SELECT system_identifier::text FROM pg_control_system()) AS system,
  (SELECT oid::text FROM pg_database WHERE datname = current_database()) AS database`;

/** Why a standby is not read from, in words for whoever runs it. */
export class StandbyUnusable extends Error {
  override name = 'Unwell';
}

export interface Standby {
  readonly sql: Sql;
  /** So much it is known to have replayed. */
  readonly replayed: Position;
  readonly isHealthy: boolean;
  /** Whether more wait for a connection to it than there are. */
  readonly isBusy: boolean;
  readonly connections: number;
  /**
   * Asks it how it is, and gives the first transaction id that it may not have seen end.
   * @throws when it is not well any more.
   */
  refresh(): Promise<bigint>;
  /** Those of the transactions that it shows as committed. */
  committedOf(transactions: readonly string[]): Promise<string[]>;
  /** Must be told of what failed there. */
  failed(error: unknown): void;
  /** Settles once it is not well any more, with the reason. */
  readonly end: Promise<Error>;
  close(): void;
}

/** What standbys are held against. */
export interface Primary {
  readonly take: PrimaryPositionReader;
  /** The timeline that it writes, as far as is known. */
  timeline(): number | undefined;
  readonly identity: Identity;
}

export interface StandbyOptions {
  readonly url: string;
  readonly bounds: PoolLimits;
  readonly primary: Primary;
}

/** How long, in milliseconds, a standby may take to say how it is. */
const longestAsking = 1_000;

/** Its timeline is that of what it receives, which is known before any of it is replayed. */
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

/** The same as a statement that goes along with each read, behind it: what was read came from a standby that was well. */
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
 * @throws when it cannot be reached; {Unwell} when it is no standby of the primary, or cannot be told to be one.
 */
export async function connectStandby(options: StandbyOptions): Promise<Standby> {
  const { url, primary } = options;
  const watcher = new pg.Client({
    ...serverOf(url),
    connectionTimeoutMillis: longestAsking,
    query_timeout: longestAsking,
  });
  const life = createConnectionGroup(watcher);
  watcher.on('error', life.lose).once('end', () => life.lose(new Error('it has ended the connection')));
  try {
    await watcher.connect();
    const began = await identify(watcher, primary.identity);
    const health = createHealth(primary);
    await health.note(await stateOf(watcher));
    const pool = openPool(options, began, life);
    const refresh = inBatches(async () => {
      try {
        const found = await stateOf(watcher);
        await health.note(found);
        return BigInt(found.bound);
      } catch (error) {
        life.lose(error);
        throw error;
      }
    });
    return {
      // Types of rows are those of the statement above.
      sql: createSql(pool, createStatementNames(), {
        statement: state,
        check: ([row]) => health.noteNow(row as unknown as State),
      }),
      get replayed() {
        return health.replayed();
      },
      get isHealthy() {
        return life.isAlive();
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
        if (error instanceof StandbyUnusable || !isOfStatement(error)) life.lose(error);
      },
      end: life.end,
      close: () => life.lose(new Error('it was closed')),
    };
  } catch (error) {
    life.lose(error);
    throw error;
  }
}

/**
 * Whether a read failed by itself, on a server that goes on: as one that recovery has cancelled, or that took too long,
 * which `pg` has no code for. Whether the server is silent, the watcher finds out.
 */
function isOfStatement(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return !/^(57P0|08)/.test(error.code ?? '');
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

/** Makes sure that it is a copy of the primary. @returns when it was started. */
async function identify(watcher: pg.Client, { system, database }: Identity): Promise<string> {
  if (await isPooled(watcher))
    throw new StandbyUnusable('a pooler stands before it, which may lead anywhere: name the standby itself');
  const { rows } = await watcher.query<Identity & { began: string }>(
    `${identityStatement}, pg_postmaster_start_time()::text AS began`,
  );
  const [found] = rows;
  if (found?.system !== system || found.database !== database)
    throw new StandbyUnusable('it is no copy of the database that DATABASE_URL names');
  return found.began;
}

/** What is known of how it is. */
function createHealth({ take, timeline: expected }: Primary) {
  let replayed: Position = 0n;

  function noteNow({ recovering, replayed: now, timeline, receiving }: State): void {
    if (!recovering) throw new StandbyUnusable('it is no standby any more: it takes writes of its own');
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
      // The primary may have become one since.
      if (found.timeline !== expected()) await take();
      noteNow(found);
    },
  };
}

/** Connections for reads, each of them to the server that the watcher has found. */
function openPool({ url, bounds }: StandbyOptions, began: string, life: Life): pg.Pool {
  const { onConnect: makeSettings } = sessionTimeouts(bounds);
  const pool = new pg.Pool({
    ...serverOf(url),
    ...clientTimeouts(bounds),
    connectionTimeoutMillis: longestAsking,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    async onConnect(client) {
      await makeSettings(client);
      const { rows } = await client.query<{ began: string }>(
        'SELECT pg_postmaster_start_time()::text AS began',
      );
      if (rows[0]?.began !== began) throw new StandbyUnusable('its address leads to another server by now');
    },
  });
  pool.on('error', life.lose);
  pool.on('connect', (client) => {
    limitStatements(client);
    life.add(client);
  });
  life.end.then(() => pool.end()).catch(() => {});
  return pool;
}

type Life = ReturnType<typeof createConnectionGroup>;

/** One life, with all connections: once one is lost none is of use, and nobody has to wait for a server that is silent. */
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
