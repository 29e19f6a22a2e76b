/** What subscriptions follow: something happens at once, and again whenever the viewer's data changes. */

import { Repeater, SlidingBuffer } from '@repeaterjs/repeater';
import type { Viewer, Viewers } from './auth/viewer.ts';
import type { Change, ChangeFeed, Table } from './database/feed.ts';

/** Yields once at the start, and after changes of the viewer's rows in the tables. */
export type Follow = (...tables: readonly Table[]) => AsyncIterable<undefined>;

/**
 * Follows the viewer's changes until their token is revoked or the reader leaves. Changes that a slow reader has
 * not asked for yet become one, since each is answered with how things are then: a reader costs one place in
 * memory, however slow it is.
 */
export function createFollow(feed: ChangeFeed, viewers: Viewers, viewer: Viewer): Follow {
  return (...tables) =>
    new Repeater<undefined>(async (push, stop) => {
      const tell = () => {
        // A full buffer drops its older entry; what is pushed after the end is of no interest.
        push(undefined).catch(() => {});
      };
      const hear = async (change: Change) => {
        if (change.kind === 'user' && change.userId !== viewer.id) return;
        const concernsToken = change.kind === 'all' || change.table === 'ApiToken';
        if (concernsToken && !(await viewers.isValid(viewer).catch(() => true))) stop();
        else if (change.kind === 'all' || tables.includes(change.table)) tell();
      };
      const unsubscribe = feed.subscribe(hear);
      tell();
      await stop;
      unsubscribe();
    }, new SlidingBuffer(1));
}
