/** What each viewer needs to see: the position that a standby has to have replayed, and what standbys have shown the viewer. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { ChangeFeed } from '../feed/changeFeed.ts';
import type { Position, PrimaryPositionReader } from '../logPosition.ts';

/**
 * The position of the primary after some moment; undefined if it could not be read. A standby that has replayed the log up to
 * there shows everything that was committed before the moment. A position that is read where a change is made, before its
 * commit, would be too early.
 */
type Moment = Promise<Position | undefined>;

interface Needs {
  /** What is needed is from before this moment. */
  moment: Moment;
}

/** A viewer needs the last change, the last write, and the last read on the primary. */
interface Viewer<Server> extends Needs {
  /** The standbys that may have shown the viewer commits that the primary does not show yet, each with the number of the last use. */
  readonly seenAt: Map<Server, number>;
}

export interface Viewers<Server> {
  /** Must be called when the viewer has changed something, has read on the primary, or has to see what another gateway knows. */
  noteChange(viewerId: number): void;
  /** Must be called when the viewer is about to read from the standby, and when that read has ended. */
  noteUse(viewerId: number, server: Server): void;
  /** The position that a standby has to have replayed for the viewer; undefined if it cannot be read. */
  neededBy(viewerId: number): Promise<Position | undefined>;
  /** The standbys that may have shown the viewer commits that the primary does not show yet. */
  seenBy(viewerId: number): readonly Server[];
  /** Waits until the primary shows everything that the viewer has seen. @param catchUp waits for one standby. */
  catchUp(viewerId: number, catchUp: (server: Server) => Promise<void>): Promise<void>;
  close(): void;
}

/** How many viewers there are entries for. When there are more, all entries are removed. */
const maxViewers = 100_000;

export function trackViewers<Server>(feed: ChangeFeed, take: PrimaryPositionReader): Viewers<Server> {
  const now = createMoments(take);
  const viewers = new Map<number, Viewer<Server>>();
  /** Needed is the last change that may concern every viewer, and what those needed whose entries were removed. */
  const everybody: Needs = { moment: now() };
  /** The standbys that viewers whose entries were removed have read from. */
  let seenBefore: readonly Server[] = [];
  let uses = 0;

  function find(viewerId: number): Viewer<Server> {
    const known = viewers.get(viewerId);
    if (known) return known;
    if (viewers.size >= maxViewers) {
      const seen = [...viewers.values()].flatMap(({ seenAt }) => [...seenAt.keys()]);
      seenBefore = [...new Set([...seenBefore, ...seen])];
      viewers.clear();
      everybody.moment = now();
    }
    const made = { moment: everybody.moment, seenAt: new Map(seenBefore.map((server) => [server, 0])) };
    viewers.set(viewerId, made);
    return made;
  }

  async function read(needs: Needs): Moment {
    const { moment } = needs;
    const position = await moment;
    // The next read tries again.
    if (position === undefined && needs.moment === moment) needs.moment = now();
    return position;
  }

  const noteChange = (viewerId: number) => {
    find(viewerId).moment = now();
  };
  const unsubscribe = feed.subscribe((change) => {
    if (change.kind === 'user') noteChange(change.userId);
    else everybody.moment = now();
  });

  return {
    noteChange,
    noteUse: (viewerId, server) => void find(viewerId).seenAt.set(server, ++uses),
    async neededBy(viewerId) {
      const [one, other] = await Promise.all([find(viewerId), everybody].map(read));
      if (one === undefined || other === undefined) return undefined;
      return one > other ? one : other;
    },
    seenBy: (viewerId) => [...find(viewerId).seenAt.keys()],
    async catchUp(viewerId, catchUp) {
      const viewer = find(viewerId);
      const { seenAt } = viewer;
      const waits = [...seenAt].map(async ([server, use]) => {
        await catchUp(server);
        // A read that has ended there meanwhile may have shown more.
        if (seenAt.get(server) !== use) return;
        seenAt.delete(server);
        // Another standby may not show yet what this one has shown.
        viewer.moment = now();
      });
      await Promise.all(waits);
    },
    close: unsubscribe,
  };
}

/** How long, in milliseconds, moments are collected before one statement reads their position. */
const batchDelay = 5;

/** Makes a function that returns this moment, whose position is read a little later, in advance of any read that needs it. */
function createMoments(take: PrimaryPositionReader): () => Moment {
  let next: Moment | undefined;
  async function read(): Moment {
    await sleep(batchDelay);
    // What happens from here on, the position may not include.
    next = undefined;
    return (await take().catch(() => undefined))?.position;
  }
  return () => {
    next ??= read();
    return next;
  };
}
