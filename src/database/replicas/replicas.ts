/**
 * Reads from standbys: each viewer's reads go to one that has everything that is known of the viewer here, and otherwise
 * to the primary.
 *
 * Why a response that was computed on a standby may be cached as any other: it is stored under the version of the viewer's
 * data at which its computation began, and a change raises both that version and what is needed of a standby, before
 * anybody else hears of it (`viewerPositions.ts`). So what began under a version is read where all changes are that the version
 * counts, and a change that is heard of later raises the version, and has the response forgotten.
 *
 * Why nobody reads something older than what they have read: on one life of one standby what is replayed only grows; to
 * another standby they come at a position that was taken on the primary after their last read; and to the primary once it
 * shows what the standby has shown (`catchUp.ts`).
 */

import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { SetupError } from '../../errors.ts';
import { hostPortText } from '../connection/hosts.ts';
import { serverOf } from '../connection/server.ts';
import type { PoolLimits } from '../database.ts';
import type { ChangeFeed } from '../feed/changeFeed.ts';
import { inBatches } from '../inBatches.ts';
import type { Position } from '../position/lsn.ts';
import { createPositionReader } from '../position/primary.ts';
import type { Sql } from '../reader/sql.ts';
import { catchUp } from './catchUp.ts';
import { type KeptStandby, keepStandby } from './keepStandby.ts';
import { createOperationSql } from './operationSql.ts';
import { type Identity, identityStatement, type Standby } from './standby.ts';
import { createViewerPositions, type ViewerPositions } from './viewerPositions.ts';

export interface ReplicaFigures {
  readonly primary: number;
  /** Reads that failed on a standby, and went to the primary. */
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
  /** What an operation of the viewer's reads and writes with: its reads go to one server. */
  sqlFor(viewer: { readonly id: number }): Sql;
  /** Must be called when the viewer has changed something, or knows that somebody has, before that is acknowledged. */
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
  /** Told of how a standby is, whenever that has changed. */
  onChange(name: string, status: string): void;
}

/** @throws {SetupError} when the primary does not say what it is. */
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
  const standbys = urls.map((url) => keepStandby({ url, bounds, primary }, nameOf(url), onChange));
  await Promise.all(standbys.map(({ tried }) => tried));
  const known = createViewerPositions<Standby>(feed, take, () =>
    standbys.flatMap(({ lives }) => [...lives()]),
  );
  const counts = createCounts();
  const choose = createChoice(standbys, known, feed);
  const caughtUp = createCatchUps(sql, known);
  return {
    sqlFor: ({ id }) =>
      createOperationSql(sql, {
        longest: bounds.statement,
        choose: (isAgain) => choose(id, isAgain),
        async readyPrimary() {
          known.noteRoute(id, undefined);
          await caughtUp(id);
        },
        noteRead(standby) {
          known.noteRead(id, standby);
          counts.add(standby && standbys.find(({ lives }) => lives().includes(standby))?.name);
        },
        retried: counts.retried,
      }),
    noteChange: known.noteChange,
    figures: () => counts.figures(standbys),
    async close() {
      known.close();
      await Promise.all(standbys.map((standby) => standby.close()));
    },
  };
}

async function identityOf(sql: Sql): Promise<Identity> {
  const [identity] = await sql.run<Identity>(identityStatement, []);
  if (!identity) throw new SetupError('DATABASE_URL names a server that does not say which one it is.');
  return identity;
}

/** Its host and port, as connections are made to it: a URL may say them in its query, or leave them out. */
const nameOf = (url: string): string => hostPortText(new pg.Client(serverOf(url)));

/** Chooses where a viewer reads; undefined for the primary. */
function createChoice(standbys: readonly KeptStandby[], known: ViewerPositions<Standby>, feed: ChangeFeed) {
  const hasReplayed = createReplayed();
  return async (viewerId: number, isAgain: boolean): Promise<Standby | undefined> => {
    // What was missed is not known: whoever has everything up to now is as good as the primary, for this one read.
    if (!isAgain && !feed.mayCache(viewerId)) known.noteChange(viewerId);
    const standby = preferred(viewerId);
    if (!standby || standby.isBusy) return undefined;
    try {
      const needed = await known.neededOf(viewerId, standby);
      if (!(await hasReplayed(standby, needed)) || !standby.isHealthy) return undefined;
    } catch {
      return undefined;
    }
    known.noteRoute(viewerId, standby);
    return standby;
  };

  /** The one that they read from, or else one of those that are well, by who they are: the same at the next time. */
  function preferred(viewerId: number): Standby | undefined {
    const before = known.serverOf(viewerId);
    if (before?.isHealthy) return before;
    const well = standbys.flatMap(({ current }) => current() ?? []);
    return well[viewerId % well.length];
  }
}

/** How long, in milliseconds, it is waited for a standby that is hardly behind, and how long between two looks. */
const longestWait = 10;
const pause = 2;

/** How long, in milliseconds, nobody waits for a standby that was waited for in vain. */
const rest = 1_000;

/** Whether the standby has replayed so much, or does so at once. */
function createReplayed() {
  const inVain = new WeakMap<Standby, number>();
  return async (standby: Standby, needed: Position): Promise<boolean> => {
    if (standby.replayed >= needed) return true;
    const began = performance.now();
    await standby.refresh();
    if (began - (inVain.get(standby) ?? Number.NEGATIVE_INFINITY) < rest) return standby.replayed >= needed;
    while (standby.replayed < needed && performance.now() - began < longestWait) {
      await sleep(pause);
      await standby.refresh();
    }
    if (standby.replayed < needed) inVain.set(standby, performance.now());
    return standby.replayed >= needed;
  };
}

/** Waits until the primary shows what a viewer has seen elsewhere: once for all who come from the same standby. */
function createCatchUps(sql: Sql, known: ViewerPositions<Standby>) {
  const underway = new WeakMap<Standby, () => Promise<void>>();
  return async (viewerId: number): Promise<void> => {
    const shownBy = known.shownBy(viewerId);
    if (shownBy.length === 0) return;
    await Promise.all(
      shownBy.map(async (standby) => {
        const wait = underway.get(standby) ?? inBatches(() => catchUp(sql, standby));
        underway.set(standby, wait);
        const until = known.now();
        await wait();
        known.noteCaughtUp(viewerId, standby, until);
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
    figures: (standbys: readonly KeptStandby[]): ReplicaFigures => ({
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
