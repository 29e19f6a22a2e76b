/**
 * Sends reads to standbys: a viewer reads from a standby that has replayed every change of the viewer's data that this
 * gateway knows of, and from the primary where no standby has.
 *
 * Why the response cache may store a response that was computed on a standby: it stores the response under the version of
 * the viewer's data at which the computation began. A change raises that version, and the position that a standby needs,
 * before anybody else hears of the change (`viewerPositions.ts`). So a computation reads from a server that shows every
 * change that its version counts, and a later change raises the version, which invalidates the response.
 *
 * Why a viewer never reads older data than before: while a standby is connected, its position only grows. A viewer moves to
 * another standby only at a position that was read on the primary after the viewer's last read, and to the primary only
 * when it shows what the standby has shown (`catchUp.ts`).
 */

import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { SetupError } from '../../errors.ts';
import { hostPortText, serverOf } from '../connection/client.ts';
import type { PoolLimits } from '../database.ts';
import type { ChangeFeed } from '../feed/changeFeed.ts';
import type { Position } from '../position/lsn.ts';
import { createPositionReader } from '../position/primary.ts';
import type { Sql } from '../reader/sql.ts';
import { createSharedRuns } from '../sharedRuns.ts';
import { catchUp } from './catchUp.ts';
import { createOperationSql } from './operationSql.ts';
import { type Identity, identityStatement, type Standby } from './standby.ts';
import { keepConnected, type OnStandbyChange, type StandbyConnection } from './standbyConnection.ts';
import { createViewerPositions, type ViewerPositions } from './viewerPositions.ts';

export interface ReplicaFigures {
  readonly primary: number;
  /** How many reads failed on a standby and were repeated on the primary. */
  readonly retried: number;
  readonly standbys: readonly {
    readonly name: string;
    readonly isHealthy: boolean;
    readonly status: string;
    readonly reads: number;
    readonly connections: number;
  }[];
}

export interface Replicas {
  /** The SQL interface for one operation of the viewer: all its reads go to one server. */
  sqlFor(viewer: { readonly id: number }): Sql;
  /** Must be called before a change of the viewer's, or one that the viewer knows of, is acknowledged. */
  noteChange(viewerId: number): void;
  figures(): ReplicaFigures;
  close(): Promise<void>;
}

export interface ReplicaOptions {
  readonly urls: readonly string[];
  /** The primary. */
  readonly sql: Sql;
  readonly feed: ChangeFeed;
  readonly bounds: PoolLimits;
  readonly onChange: OnStandbyChange;
}

/** @throws {SetupError} when the identity of the primary cannot be read. */
export async function openReplicas(options: ReplicaOptions): Promise<Replicas> {
  const { urls, sql, feed, bounds, onChange } = options;
  const identity = await identityOf(sql);
  let timeline: number | undefined;
  const takeNow = createPositionReader(sql);
  const take = async () => {
    const taken = await takeNow();
    timeline = taken.timeline;
    return taken;
  };
  const primary = { take, timeline: () => timeline, identity };
  const standbys = urls.map((url) => keepConnected({ url, bounds, primary }, nameOf(url), onChange));
  await Promise.all(standbys.map(({ tried }) => tried));
  const positions = createViewerPositions<Standby>(feed, take, () =>
    standbys.flatMap(({ recent }) => [...recent()]),
  );
  const counts = createCounts();
  const choose = createStandbySelector(standbys, positions, feed);
  const waitForPrimary = createPrimaryWait(sql, positions);
  return {
    sqlFor: ({ id }) =>
      createOperationSql(sql, {
        longest: bounds.statement,
        choose: (isAgain) => choose(id, isAgain),
        async readyPrimary() {
          positions.noteRoute(id, undefined);
          await waitForPrimary(id);
        },
        noteRead(standby) {
          positions.noteRead(id, standby);
          counts.add(standby && standbys.find(({ recent }) => recent().includes(standby))?.name);
        },
        retried: counts.retried,
      }),
    noteChange: positions.noteChange,
    figures: () => counts.figures(standbys),
    async close() {
      positions.close();
      await Promise.all(standbys.map((standby) => standby.close()));
    },
  };
}

async function identityOf(sql: Sql): Promise<Identity> {
  const [identity] = await sql.run<Identity>(identityStatement, []);
  if (!identity) throw new SetupError('DATABASE_URL names a server that does not say which one it is.');
  return identity;
}

/** The host and port that `pg` connects to: a URL may have them in its query, or leave them out. */
const nameOf = (url: string): string => hostPortText(new pg.Client(serverOf(url)));

/** Selects the standby that a viewer reads from; undefined for the primary. */
function createStandbySelector(
  standbys: readonly StandbyConnection[],
  positions: ViewerPositions<Standby>,
  feed: ChangeFeed,
) {
  const hasReplayed = createReplayCheck();
  return async (viewerId: number, isAgain: boolean): Promise<Standby | undefined> => {
    // The change feed may have missed changes of this viewer. A standby that has replayed the present position has them.
    if (!isAgain && !feed.mayCache(viewerId)) positions.noteChange(viewerId);
    const standby = preferred(viewerId);
    if (!standby || standby.isBusy) return undefined;
    try {
      const needed = await positions.neededOf(viewerId, standby);
      if (!(await hasReplayed(standby, needed)) || !standby.isHealthy) return undefined;
    } catch {
      return undefined;
    }
    positions.noteRoute(viewerId, standby);
    return standby;
  };

  /** The standby that the viewer reads from already, or one of the healthy ones, by the viewer's id. */
  function preferred(viewerId: number): Standby | undefined {
    const before = positions.serverOf(viewerId);
    if (before?.isHealthy) return before;
    const well = standbys.flatMap(({ current }) => current() ?? []);
    return well[viewerId % well.length];
  }
}

/** How long, in milliseconds, a read waits for a standby that lags a little, and how often it looks. */
const longestWait = 10;
const pause = 2;

/** After such a wait has timed out, no read waits for that standby for so many milliseconds. */
const retryPause = 1_000;

/** Checks whether the standby has replayed the log up to a position, and waits briefly for it. */
function createReplayCheck() {
  const lastTimeout = new WeakMap<Standby, number>();
  return async (standby: Standby, needed: Position): Promise<boolean> => {
    if (standby.replayed >= needed) return true;
    const began = performance.now();
    await standby.refresh();
    if (began - (lastTimeout.get(standby) ?? Number.NEGATIVE_INFINITY) < retryPause)
      return standby.replayed >= needed;
    while (standby.replayed < needed && performance.now() - began < longestWait) {
      await sleep(pause);
      await standby.refresh();
    }
    if (standby.replayed < needed) lastTimeout.set(standby, performance.now());
    return standby.replayed >= needed;
  };
}

/** Waits until the primary shows what standbys have shown a viewer. All viewers of a standby share one wait. */
function createPrimaryWait(sql: Sql, positions: ViewerPositions<Standby>) {
  const underway = new WeakMap<Standby, () => Promise<void>>();
  return async (viewerId: number): Promise<void> => {
    const shownBy = positions.shownBy(viewerId);
    if (shownBy.length === 0) return;
    await Promise.all(
      shownBy.map(async (standby) => {
        const wait = underway.get(standby) ?? createSharedRuns(() => catchUp(sql, standby)).begin;
        underway.set(standby, wait);
        const until = positions.now();
        await wait();
        positions.noteCaughtUp(viewerId, standby, until);
      }),
    );
  };
}

function createCounts() {
  const reads = new Map<string | undefined, number>();
  let retried = 0;
  return {
    add: (name: string | undefined) => void reads.set(name, (reads.get(name) ?? 0) + 1),
    retried: () => void retried++,
    figures: (standbys: readonly StandbyConnection[]): ReplicaFigures => ({
      primary: reads.get(undefined) ?? 0,
      retried,
      standbys: standbys.map(({ name, current, status }) => ({
        name,
        isHealthy: current() !== undefined,
        status: status(),
        reads: reads.get(name) ?? 0,
        connections: current()?.connections ?? 0,
      })),
    }),
  };
}
