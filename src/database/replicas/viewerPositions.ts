/**
 * For each viewer, the position that a standby has to have replayed before the viewer may read from it. It is a position of
 * the primary, read after this gateway heard of the viewer's last change, so a standby that has replayed it shows the
 * change. A position that is read where the change is made, before its commit, would be too early.
 */

import type { ChangeFeed } from '../feed/changeFeed.ts';
import type { Position } from '../position/lsn.ts';
import type { PrimaryPositionReader } from '../position/primary.ts';
import { createWatermarks, type Watermark } from './watermarks.ts';

/** How many viewers there are entries for. When there are more, all entries are removed. */
const maxViewers = 100_000;

interface ViewerState<Server> {
  /** After the viewer's last change, write, or read on the primary, which every server has to show from then on. */
  changed: Watermark | undefined;
  /** The standby that the viewer reads from; undefined if the viewer was sent to the primary since. */
  server: Server | undefined;
  /** Whether the viewer has read from that standby since the change. Another standby may not show what was read. */
  hasReadSinceChange: boolean;
  /** The standbys that may have shown the viewer commits that the primary does not show yet, with the number of the last read. */
  readonly shown: Map<Server, number>;
}

export interface ViewerPositions<Server> {
  /** Must be called when the viewer has changed something, or a request brings a position that it has to see. */
  noteChange(viewerId: number): void;
  /** The position that the standby has to have replayed before the viewer may read there. */
  neededOf(viewerId: number, server: Server): Promise<Position>;
  /** The standby that the viewer reads from. */
  serverOf(viewerId: number): Server | undefined;
  /** Must be called when the viewer is sent to a standby, or to the primary. */
  noteRoute(viewerId: number, server: Server | undefined): void;
  /** Must be called when a read of the viewer's has ended on the server. */
  noteRead(viewerId: number, server: Server | undefined): void;
  /** The standbys that may have shown the viewer commits that the primary does not show yet. */
  shownBy(viewerId: number): readonly Server[];
  /** The number of the read that ended last. */
  now(): number;
  /** Must be called when the primary shows everything that the standby had shown by the read with the number `until`. */
  noteCaughtUp(viewerId: number, server: Server, until: number): void;
  close(): void;
}

/** @param servers all standbys: a viewer whose entry was removed may have read from any of them. */
export function createViewerPositions<Server>(
  feed: ChangeFeed,
  take: PrimaryPositionReader,
  servers: () => readonly Server[],
): ViewerPositions<Server> {
  const { watermarks, find, mark, everybody, close } = trackViewers(feed, take, servers);
  let clock = 0;

  return {
    noteChange: (viewerId) => mark(find(viewerId)),
    async neededOf(viewerId, server) {
      const viewer = find(viewerId);
      if (viewer.server !== server && viewer.hasReadSinceChange) mark(viewer);
      const all = everybody();
      const own = viewer.changed ?? all;
      const [one, other] = await Promise.all([watermarks.positionOf(own), watermarks.positionOf(all)]);
      return one > other ? one : other;
    },
    serverOf: (viewerId) => find(viewerId).server,
    noteRoute(viewerId, server) {
      const viewer = find(viewerId);
      if (viewer.server === server) return;
      // A read that was in flight on the other server may have ended meanwhile.
      if (viewer.hasReadSinceChange) mark(viewer);
      viewer.server = server;
    },
    noteRead(viewerId, server) {
      const viewer = find(viewerId);
      if (server) viewer.shown.set(server, ++clock);
      if (server && viewer.server === server) viewer.hasReadSinceChange = true;
      // The standby that the viewer reads from now may not show what this read has shown.
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

/** The entries of the viewers, and what happened to all of them. */
function trackViewers<Server>(
  feed: ChangeFeed,
  take: PrimaryPositionReader,
  servers: () => readonly Server[],
) {
  const viewers = new Map<number, ViewerState<Server>>();
  const watermarks = createWatermarks(take);
  /** After the last change that may concern every viewer, and after the entries were removed. */
  let everybody = watermarks.add();
  /** The standbys that viewers without an entry may have read from. */
  let shownToRemoved: readonly Server[] = [];

  function find(viewerId: number): ViewerState<Server> {
    const known = viewers.get(viewerId);
    if (known) return known;
    if (viewers.size >= maxViewers) {
      viewers.clear();
      everybody = watermarks.add();
      shownToRemoved = servers();
    }
    const shown = new Map(shownToRemoved.map((server) => [server, 0] as const));
    const made = { changed: undefined, server: undefined, hasReadSinceChange: false, shown };
    viewers.set(viewerId, made);
    return made;
  }

  function mark(viewer: ViewerState<Server>): void {
    viewer.changed = watermarks.add();
    viewer.hasReadSinceChange = false;
  }

  const unsubscribe = feed.subscribe((change) => {
    if (change.kind === 'user') mark(find(change.userId));
    else everybody = watermarks.add();
  });

  return {
    watermarks,
    find,
    mark,
    everybody: () => everybody,
    close() {
      unsubscribe();
      watermarks.close();
    },
  };
}
