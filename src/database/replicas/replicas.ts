/**
 * Reads from standbys. One rule: a viewer reads from a standby that has replayed every change of the viewer's data that this
 * gateway knows, or else from the primary. Promises that no viewer sees older data than before, and that a silent or lost
 * standby delays no read for long. May be replaced by reading everything from the primary.
 *
 * Why the response cache may store a response of a standby: it stores the response under the version of the viewer's data at which
 * the computation began. A change first raises that version and the position that a standby needs; only then do other parts hear
 * of it. So a computation reads from a server that shows every change in its version. A later change raises the version, and
 * so invalidates the response.
 *
 * Why a viewer never reads older data than before: each viewer has one standby. Its position only grows while it is connected, and
 * after a loss it is used again only when it shows everything that it may have shown before. A viewer changes from it only to
 * the primary, which by then shows what the standby has shown (`catchUp`). After a read on the primary, a viewer reads from the
 * standby only when it has replayed the position after that read.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { clientError, messages } from '../../errors.ts';
import type { PoolLimits } from '../database.ts';
import type { ChangeFeed } from '../feed/changeFeed.ts';
import type { Position } from '../logPosition.ts';
import type { Sql } from '../reader/sql.ts';
import { createSharedRuns } from '../waiting.ts';
import {
  keepConnected,
  type OnStandbyChange,
  type Primary,
  readPrimary,
  type Standby,
  type StandbyConnection,
} from './standby.ts';

export type Replicas = Awaited<ReturnType<typeof openReplicas>>;

export interface ReplicaOptions {
  readonly urls: readonly string[];
  /** The primary. */
  readonly sql: Sql;
  readonly feed: ChangeFeed;
  readonly bounds: PoolLimits;
  readonly onChange: OnStandbyChange;
}

/** @throws {SetupError} when the identity of the primary cannot be read. */
export async function openReplicas({ urls, sql, feed, bounds, onChange }: ReplicaOptions) {
  const primary = await readPrimary(sql);
  const addresses = urls.map((url): StandbyAddress => {
    const connection = keepConnected({ url, bounds, primary }, onChange);
    // All viewers of a standby share one wait.
    const { begin } = createSharedRuns(() => catchUp(sql, connection));
    return { ...connection, catchUp: begin, reads: 0 };
  });
  const viewers = trackViewers(feed, primary.take);
  const counts = { primary: 0, retried: 0 };
  return {
    /** The SQL interface of one operation of the viewer. Each viewer has one address; there is at least one. */
    sqlFor: ({ id }: { readonly id: number }) =>
      createOperationSql(sql, id, addresses[id % addresses.length] as StandbyAddress, viewers, counts),
    /** Must be called before a change by the viewer, or one that the viewer knows, is acknowledged. */
    noteChange: viewers.noteChange,
    figures: () => ({
      ...counts,
      standbys: addresses.map(({ name, current, status, reads }) => ({
        name,
        isHealthy: current() !== undefined,
        status: status(),
        reads,
      })),
    }),
    async close() {
      viewers.close();
      await Promise.all(addresses.map(({ close }) => close()));
    },
  };
}

/** The address of a standby, which may be another server after a reconnection. */
interface StandbyAddress extends StandbyConnection {
  /** Waits until the primary shows what the standby has shown. */
  catchUp(): Promise<void>;
  reads: number;
}

/** The SQL interface of one operation: all its reads go to one server, which is the primary as soon as it has written. */
function createOperationSql(
  primary: Sql,
  viewerId: number,
  address: StandbyAddress,
  viewers: ReturnType<typeof trackViewers>,
  counts: { primary: number; retried: number },
): Sql {
  let choosing: Promise<Standby | undefined> | undefined;

  async function choose(): Promise<Standby | undefined> {
    const standby = address.current();
    if (!standby || standby.isBusy()) return undefined;
    const needed = await viewers.neededBy(viewerId);
    if (needed === undefined) return undefined;
    if (!standby.hasReplayed(needed)) await standby.refresh();
    return standby.lostAt() === undefined && standby.hasReplayed(needed) ? standby : undefined;
  }

  async function read<Rows>(use: (sql: Sql) => Promise<Rows>): Promise<Rows> {
    choosing ??= choose();
    const standby = await choosing;
    if (!standby) return usePrimary(use);
    try {
      const rows = await use(standby.sql);
      address.reads++;
      viewers.noteRead(viewerId);
      return rows;
    } catch (error) {
      standby.failed(error);
      // The server has cancelled it, mostly for a timeout. On the primary it would probably take as long.
      if (error instanceof pg.DatabaseError && error.code === '57014') throw error;
      counts.retried++;
      return usePrimary(use);
    }
  }

  async function usePrimary<Rows>(use: (sql: Sql) => Promise<Rows>): Promise<Rows> {
    // Later reads have to show what was written, or read here.
    choosing = Promise.resolve(undefined);
    await viewers.showOnPrimary(viewerId, address.catchUp);
    try {
      return await use(primary);
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
      usePrimary((sql) => sql.write<Row>(...given)),
  };
}

/**
 * The commits that are being written to disk, or wait for synchronous replication, and so cannot be read yet. Only transactions that
 * began earlier than this many milliseconds ago.
 */
const committing = `SELECT concat(pid, ' ', xact_start) AS commit FROM pg_stat_activity
  WHERE lower(wait_event) IN ('syncrep', 'walwrite', 'walsync') AND xact_start < now() - $1 * interval '1 millisecond'`;

/** How long to wait for the primary, and how long between two checks, both in milliseconds. */
const longestCatchUp = 2_000;
const catchUpPause = 5;

/**
 * Waits until the primary shows everything that the standby has shown so far. A standby may show a commit before the primary: the
 * primary shows it when the committing process has finished, which with synchronous replication waits for the standby. A lost
 * standby can only have shown transactions that began before its loss.
 * @throws SERVICE_UNAVAILABLE when the primary does not show it in time.
 */
async function catchUp(sql: Sql, { current, lostAt }: StandbyConnection): Promise<void> {
  const began = performance.now();
  const last = current() ? began : lostAt();
  if (last === undefined) return;
  let left: readonly string[] | undefined;
  for (;;) {
    const rows = await sql.run<{ commit: string }>(committing, [performance.now() - last]);
    const now = rows.map(({ commit }) => commit);
    left = left?.filter((commit) => now.includes(commit)) ?? now;
    if (left.length === 0) return;
    if (performance.now() - began > longestCatchUp)
      throw clientError('SERVICE_UNAVAILABLE', messages.primaryBehind, { retryAfter: 1 });
    await sleep(catchUpPause);
  }
}

/** The state that a viewer has to see. */
interface ViewerState {
  /**
   * The position of the primary after the last change, the last write and the last read there; undefined if it could not be
   * read. A standby that has replayed it shows all of them. A position that is read where a change is made, before its commit,
   * would be too early.
   */
  needed: Promise<Position | undefined>;
  /** The number of the last read that may have shown, on the standby, what the primary does not show yet. */
  lastRead: number | undefined;
}

/** How many viewers are remembered. When there are more, all are forgotten. */
const maxViewers = 100_000;

/** How long, in milliseconds, changes are collected before one statement reads their position. */
const batchDelay = 5;

function trackViewers(feed: ChangeFeed, take: Primary['take']) {
  const viewers = new Map<number, ViewerState>();
  let reads = 0;
  let next: Promise<Position | undefined> | undefined;

  /** A position after this moment. It is read a little later, before any read needs it. */
  function positionAfterNow(): Promise<Position | undefined> {
    next ??= sleep(batchDelay).then(async () => {
      // The position may not include changes from here on.
      next = undefined;
      return (await take().catch(() => undefined))?.position;
    });
    return next;
  }

  /** An unknown viewer may have seen any change. */
  function find(viewerId: number): ViewerState {
    const known = viewers.get(viewerId);
    if (known) return known;
    if (viewers.size >= maxViewers) viewers.clear();
    const made = { needed: positionAfterNow(), lastRead: ++reads };
    viewers.set(viewerId, made);
    return made;
  }

  function noteChange(viewerId: number): void {
    find(viewerId).needed = positionAfterNow();
  }
  const unsubscribe = feed.subscribe((change) => {
    if (change.kind === 'all') viewers.clear();
    else if (viewers.has(change.userId)) noteChange(change.userId);
  });

  return {
    noteChange,
    noteRead(viewerId: number): void {
      find(viewerId).lastRead = ++reads;
    },
    /** The position that a standby has to have replayed for the viewer; undefined if it cannot be read. */
    neededBy: (viewerId: number): Promise<Position | undefined> =>
      // Without a feed, changes may have been missed. A standby that has replayed the present position has them.
      feed.listening ? find(viewerId).needed : positionAfterNow(),
    /** Waits until the primary shows everything that the viewer has seen on the standby. */
    async showOnPrimary(viewerId: number, wait: () => Promise<void>): Promise<void> {
      const viewer = find(viewerId);
      const { lastRead } = viewer;
      if (lastRead === undefined) return;
      await wait();
      // A read that has ended there meanwhile may have shown more.
      if (viewer.lastRead === lastRead) viewer.lastRead = undefined;
    },
    close: unsubscribe,
  };
}
