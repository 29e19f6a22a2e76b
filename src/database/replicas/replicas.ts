/**
 * Reads from standbys. One rule: a viewer reads from a standby that has replayed every change of the viewer's data that this
 * gateway knows of, and else from the primary. Promised is that no viewer sees older data than before, and that a standby
 * that is silent or lost delays no read for long. It may be replaced by reading everything from the primary.
 *
 * Why the response cache may store a response that was computed on a standby: it stores the response under the version of
 * the viewer's data at which the computation began. A change raises that version, and the position that a standby needs,
 * before anybody else hears of the change (`viewers.ts`). So a computation reads from a server that shows every change that
 * its version counts, and a later change raises the version, which invalidates the response.
 *
 * Why a viewer never reads older data than before: while a standby is connected, its position only grows. A viewer leaves it
 * for the primary only, which by then shows what the standby has shown (`catchUp.ts`). A viewer who has read on the primary
 * reads from a standby that has replayed the position after that read.
 */

import type { PoolLimits } from '../database.ts';
import type { ChangeFeed } from '../feed/changeFeed.ts';
import type { Position } from '../logPosition.ts';
import type { Sql } from '../reader/sql.ts';
import { createSharedRuns } from '../sharedRuns.ts';
import { catchUp } from './catchUp.ts';
import { createOperationSql } from './operationSql.ts';
import { readPrimary, type Standby } from './standby.ts';
import { keepConnected, type OnStandbyChange, type StandbyConnection } from './standbyConnection.ts';
import { trackViewers, type Viewers } from './viewers.ts';

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
  const primary = await readPrimary(sql);
  const standbys = urls.map((url) => keepConnected({ url, bounds, primary }, onChange));
  await Promise.all(standbys.map(({ tried }) => tried));
  const viewers = trackViewers<Standby>(feed, primary.take);
  const choose = createStandbySelector(standbys, viewers, feed);
  const catchUpWith = shareCatchUps(sql);
  const counts = createCounts();
  return {
    sqlFor: ({ id }) =>
      createOperationSql(sql, {
        longest: bounds.statement,
        choose: () => choose(id),
        readyPrimary: () => viewers.catchUp(id, catchUpWith),
        noteUse(standby) {
          if (standby) viewers.noteUse(id, standby);
          else viewers.noteChange(id);
          counts.add(standby?.name);
        },
        retried: counts.retried,
      }),
    noteChange: viewers.noteChange,
    figures: () => counts.figures(standbys),
    async close() {
      viewers.close();
      await Promise.all(standbys.map((standby) => standby.close()));
    },
  };
}

/** Makes a function that selects the standby that a viewer reads from; undefined for the primary. */
function createStandbySelector(
  standbys: readonly StandbyConnection[],
  viewers: Viewers<Standby>,
  feed: ChangeFeed,
) {
  return async (viewerId: number): Promise<Standby | undefined> => {
    const seenAt = viewers.seenBy(viewerId);
    const healthy = standbys.flatMap(({ current }) => current() ?? []);
    const standby = seenAt.find(({ isHealthy }) => isHealthy) ?? healthy[viewerId % healthy.length];
    // What another standby has shown, this one may not show. The primary does, once it has caught up.
    if (!standby || standby.isBusy || seenAt.some((each) => each !== standby)) return undefined;
    // The change feed may have missed changes of this viewer. A standby that has replayed the present position has them.
    if (!feed.mayCache(viewerId)) viewers.noteChange(viewerId);
    const needed = await viewers.neededBy(viewerId);
    if (needed === undefined || !(await hasReplayed(standby, needed))) return undefined;
    viewers.noteUse(viewerId, standby);
    return standby;
  };
}

async function hasReplayed(standby: Standby, needed: Position): Promise<boolean> {
  if (standby.replayed < needed) await standby.refresh().catch(() => {});
  return standby.isHealthy && standby.replayed >= needed;
}

/** Makes a function that waits until the primary shows what a standby has shown. All viewers of a standby share one wait. */
function shareCatchUps(sql: Sql) {
  const waits = new WeakMap<Standby, () => Promise<void>>();
  return (standby: Standby): Promise<void> => {
    const wait = waits.get(standby) ?? createSharedRuns(() => catchUp(sql, standby)).begin;
    waits.set(standby, wait);
    return wait();
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
