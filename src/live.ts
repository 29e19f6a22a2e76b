/** What subscriptions follow: something happens at once, and again whenever the viewer's data changes. */

import { Repeater, SlidingBuffer } from '@repeaterjs/repeater';
import type { Viewer, Viewers } from './auth/viewer.ts';
import type { Change, ChangeFeed } from './database/feed.ts';

/** Yields once at the start, and after changes of anything that is the viewer's: a selection may reach all of it. */
export type Follow = () => AsyncIterable<undefined>;

/**
 * Follows the viewer's changes until their token is revoked or the reader leaves. Changes that a slow reader has
 * not asked for yet become one, since each is answered with how things are then: a reader costs one place in
 * memory, however slow it is.
 */
export function createFollow(feed: ChangeFeed, viewers: Viewers, viewer: Viewer): Follow {
  return () =>
    new Repeater<undefined>(async (push, stop) => {
      const hear = async (change: Change) => {
        if (change.kind === 'user' && change.userId !== viewer.id) return;
        const concernsToken = change.kind === 'all' || change.table === 'ApiToken';
        if (concernsToken && !(await viewers.isValid(viewer).catch(() => true))) stop();
        // A full buffer drops its older entry; what is pushed after the end is of no interest.
        else push(undefined).catch(() => {});
      };
      const unsubscribe = feed.subscribe(hear);
      // Anything may have happened since the request came, and the token been revoked.
      hear({ kind: 'all' });
      await stop;
      unsubscribe();
    }, new SlidingBuffer(1));
}
