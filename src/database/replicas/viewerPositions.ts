/**
 * What the gateway knows of each viewer that a server has to have, before the viewer may read there: a position that was
 * taken on the primary after it was known here. Whoever has replayed so much has it. Where the change is made, before its
 * commit, the position would be too early.
 */

import type { ChangeFeed } from '../feed/changeFeed.ts';
import type { Position } from '../position/lsn.ts';
import type { PrimaryPositionReader } from '../position/primary.ts';
import { createMarks, type Mark } from './marks.ts';

/** Of how many viewers there is something of their own known. */
const maxViewers = 100_000;

interface ViewerState<Server> {
  /** After what happened to them last that every server has to have: a change, a write, a read on the primary. */
  changed: Mark | undefined;
  /** The standby that they read from, where they were not sent to the primary since. */
  server: Server | undefined;
  /** Whether they have read there since the mark. To that one it is nothing new. */
  hasReadSinceMark: boolean;
  /** The standbys that may have shown what the primary does not show yet, and when they last did. */
  readonly shown: Map<Server, number>;
}

export interface ViewerPositions<Server> {
  /** Must be called when the viewer has changed something, or comes with the knowledge that somebody has. */
  noteChange(viewerId: number): void;
  /** The position that the standby has to have replayed before the viewer may read there. */
  neededOf(viewerId: number, server: Server): Promise<Position>;
  /** The standby that the viewer reads from. */
  serverOf(viewerId: number): Server | undefined;
  /** Must be called when the viewer is sent to a standby, or to the primary. */
  noteRoute(viewerId: number, server: Server | undefined): void;
  /** Must be called when a read has ended there. */
  noteRead(viewerId: number, server: Server | undefined): void;
  /** The standbys from which the viewer may know more than the primary shows. */
  shownBy(viewerId: number): readonly Server[];
  /** The number of the read that ended last. */
  now(): number;
  /** Must be called when the primary shows what the standby has shown until then. */
  noteCaughtUp(viewerId: number, server: Server, until: number): void;
  close(): void;
}

/** @param servers all standbys: what was forgotten may have been read from any of them. */
export function createViewerPositions<Server>(
  feed: ChangeFeed,
  take: PrimaryPositionReader,
  servers: () => readonly Server[],
): ViewerPositions<Server> {
  const { marks, find, mark, everybody, close } = trackViewers(feed, take, servers);
  let clock = 0;

  return {
    noteChange: (viewerId) => mark(find(viewerId)),
    async neededOf(viewerId, server) {
      const viewer = find(viewerId);
      if (viewer.server !== server && viewer.hasReadSinceMark) mark(viewer);
      const all = everybody();
      const own = viewer.changed ?? all;
      const [one, other] = await Promise.all([marks.positionOf(own), marks.positionOf(all)]);
      return one > other ? one : other;
    },
    serverOf: (viewerId) => find(viewerId).server,
    noteRoute(viewerId, server) {
      const viewer = find(viewerId);
      if (viewer.server === server) return;
      // A read that was under way elsewhere may have ended meanwhile.
      if (viewer.hasReadSinceMark) mark(viewer);
      viewer.server = server;
    },
    noteRead(viewerId, server) {
      const viewer = find(viewerId);
      if (server) viewer.shown.set(server, ++clock);
      if (server && viewer.server === server) viewer.hasReadSinceMark = true;
      // Where they read from now need not have what they have seen elsewhere.
      else mark(viewer);
    },
    shownBy: (viewerId) => [...find(viewerId).shown.keys()],
    now: () => clock,
    noteCaughtUp(viewerId, server, until) {
      const { shown } = find(viewerId);
      if ((shown.get(server) ?? 0) <= until) shown.delete(server);
    },
    close,
  };
}

/** The viewers of whom something of their own is known. */
function trackViewers<Server>(
  feed: ChangeFeed,
  take: PrimaryPositionReader,
  servers: () => readonly Server[],
) {
  const viewers = new Map<number, ViewerState<Server>>();
  const marks = createMarks(take);
  /** After what happened last to everybody, and to those of whom nothing is known. */
  let everybody = marks.add();
  /** The standbys that whoever was forgotten may have read from. */
  let forgotten: readonly Server[] = [];

  function find(viewerId: number): ViewerState<Server> {
    const known = viewers.get(viewerId);
    if (known) return known;
    if (viewers.size >= maxViewers) {
      viewers.clear();
      everybody = marks.add();
      forgotten = servers();
    }
    const shown = new Map(forgotten.map((server) => [server, 0] as const));
    const made = { changed: undefined, server: undefined, hasReadSinceMark: false, shown };
    viewers.set(viewerId, made);
    return made;
  }

  function mark(viewer: ViewerState<Server>): void {
    viewer.changed = marks.add();
    viewer.hasReadSinceMark = false;
  }

  const unsubscribe = feed.subscribe((change) => {
    if (change.kind === 'user') mark(find(change.userId));
    else everybody = marks.add();
  });

  return {
    marks,
    find,
    mark,
    everybody: () => everybody,
    close() {
      unsubscribe();
      marks.close();
    },
  };
}
