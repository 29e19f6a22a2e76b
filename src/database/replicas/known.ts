/**
 * What the gateway knows of each viewer that a server has to have, before the viewer may read there.
 *
 * Everything that happens has a number, in the order in which it does: a change that was heard of, a write, a read. A
 * position that was taken on the primary after something happened covers it: whoever has replayed so much has it. So a
 * position is taken after the change is known of here, and not where the change is made: before its commit the position
 * would be too early.
 */

import type { ChangeFeed } from '../feed/changeFeed.ts';
import type { Position } from '../position/lsn.ts';
import type { Taken, TakePosition } from '../position/primary.ts';

/** How many viewers there is something of their own known of. */
const maxViewers = 100_000;

interface Viewer<Server> {
  /** When something last happened that every server has to have: a change, a write, a read on the primary. */
  changed: number;
  /** When they last read on the standby that they read from. To that one it is nothing new. */
  read: number;
  /** The standby that they read from, where they were not sent to the primary since. */
  server: Server | undefined;
  /** The standbys that may have shown what the primary does not show yet, and when they last did. */
  readonly shown: Map<Server, number>;
  /** The position that was last taken for them, and until when it covers what happened. */
  position: Position;
  covered: number;
}

export interface Known<Server> {
  /** Must be called when the viewer has changed something, or comes with the knowledge that somebody has. */
  changed(viewerId: number): void;
  /** The position that the standby has to have replayed before the viewer may read there. */
  neededOf(viewerId: number, server: Server): Promise<Position>;
  /** The standby that the viewer reads from. */
  serverOf(viewerId: number): Server | undefined;
  /** Must be called when the viewer is sent to a standby, or to the primary. */
  sent(viewerId: number, server: Server | undefined): void;
  /** Must be called when a read has ended there. */
  hasRead(viewerId: number, server: Server | undefined): void;
  /** The standbys from which the viewer may know more than the primary shows. */
  shownBy(viewerId: number): readonly Server[];
  /** The number of what happened last. */
  now(): number;
  /** Must be called when the primary shows what the standby has shown until then. */
  caughtUp(viewerId: number, server: Server, until: number): void;
  close(): void;
}

/** @param servers all standbys: what was forgotten may have been read from any of them. */
export function createKnown<Server>(
  feed: ChangeFeed,
  take: TakePosition,
  servers: () => readonly Server[],
): Known<Server> {
  const viewers = new Map<number, Viewer<Server>>();
  let clock = 0;
  /** When something last happened to everybody. */
  let everybody = 0;
  /** When what was known of viewers was last forgotten. */
  let forgotten: number | undefined;
  let latest: { readonly taken: Taken; readonly covers: number } | undefined;

  function find(viewerId: number): Viewer<Server> {
    const known = viewers.get(viewerId);
    if (known) return known;
    if (viewers.size >= maxViewers) {
      viewers.clear();
      forgotten = ++clock;
    }
    const at = forgotten;
    const shown = new Map(at === undefined ? [] : servers().map((server) => [server, at] as const));
    // What has happened to them until now is not known any more, or never was.
    const made: Viewer<Server> = { changed: clock, read: 0, server: undefined, shown, position: 0n, covered: -1 };
    viewers.set(viewerId, made);
    return made;
  }

  function changed(viewerId: number): void {
    find(viewerId).changed = ++clock;
  }

  const unsubscribe = feed.subscribe((change) => {
    if (change.kind === 'all') everybody = ++clock;
    else if (viewers.has(change.userId)) changed(change.userId);
    // Somebody of whom nothing is known is given what is taken when they ask.
    else clock++;
  });

  async function takeNow(): Promise<void> {
    // What happens while it is under way may have come too late for it.
    const covers = clock;
    const taken = await take();
    if (!latest || covers >= latest.covers) latest = { taken, covers };
  }

  return {
    changed,
    async neededOf(viewerId, server) {
      const viewer = find(viewerId);
      const since = Math.max(everybody, viewer.changed, viewer.server === server ? 0 : viewer.read);
      if (viewer.covered >= since) return viewer.position;
      if (!latest || latest.covers < since) await takeNow();
      if (!latest) throw new Error('no position was taken');
      viewer.position = latest.taken.position;
      viewer.covered = latest.covers;
      return viewer.position;
    },
    serverOf: (viewerId) => find(viewerId).server,
    sent(viewerId, server) {
      const viewer = find(viewerId);
      if (viewer.server === server) return;
      viewer.server = server;
      viewer.changed = Math.max(viewer.changed, viewer.read);
    },
    hasRead(viewerId, server) {
      const viewer = find(viewerId);
      const at = ++clock;
      if (server) viewer.shown.set(server, at);
      if (server && viewer.server === server) viewer.read = at;
      // Where they read from now need not have what they have seen elsewhere.
      else viewer.changed = at;
    },
    shownBy: (viewerId) => [...find(viewerId).shown.keys()],
    now: () => clock,
    caughtUp(viewerId, server, until) {
      const { shown } = find(viewerId);
      if ((shown.get(server) ?? 0) <= until) shown.delete(server);
    },
    close: unsubscribe,
  };
}
