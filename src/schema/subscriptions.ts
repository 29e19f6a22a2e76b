/** What subscriptions follow: something happens at once, and again whenever the viewer's data changes. */

import { setTimeout as sleep } from 'node:timers/promises';
import { Repeater, SlidingBuffer } from '@repeaterjs/repeater';
import type { Viewer, Viewers } from '../auth/viewer.ts';
import { type ChangeFeed, type ChangeListener, concernsTokens } from '../database/changeFeed.ts';

/** Yields once at the start, and after changes of anything that is the viewer's: a selection may reach all of it. */
export type Follow = () => AsyncIterable<undefined>;

export interface FollowOptions {
  readonly feed: ChangeFeed;
  readonly viewers: Viewers;
  /** How often, in seconds, it is asked whether the token still stands, whatever the feed says. */
  readonly maxAge: number;
  /** How long to wait, in milliseconds, before the database is asked again that could not be. */
  readonly retryDelay?: number;
}

/**
 * Follows the viewer's changes until their token is revoked or the reader leaves. Nothing is yielded while it is not
 * known whether the token still stands. Changes that a slow reader has not asked for yet become one, since each is
 * resolved to how things are then: a reader costs one place in memory, however slow it is.
 */
export function createFollow(
  { feed, viewers, maxAge, retryDelay = 1_000 }: FollowOptions,
  viewer: Viewer,
): Follow {
  return () => {
    /** What was yielded and a slow reader has not asked for yet. A full one drops its older entry. */
    const unread = new SlidingBuffer(1);
    return new Repeater<undefined>(async (push, stop) => {
      const ended = new AbortController();
      /** Whether the token may not stand any more. */
      let doubted = false;
      let settling = false;

      /** Finds out whether the token stands, as often as it is doubted, and yields once for all that was heard of meanwhile. */
      async function settle(): Promise<void> {
        if (settling) return;
        settling = true;
        while (doubted) {
          doubted = false;
          const isValid = await viewers.isValid(viewer).catch(() => undefined);
          if (isValid === false) return stop();
          if (isValid) continue;
          doubted = true;
          await sleep(retryDelay, undefined, { signal: ended.signal });
        }
        settling = false;
        // What is pushed after the end is of no interest.
        push(undefined).catch(() => {});
      }

      const hear: ChangeListener = (change) => {
        if (change.kind === 'user' && change.userId !== viewer.id) return;
        doubted ||= concernsTokens(change);
        // Whoever takes it gets how things are then, and the token may be revoked by then.
        if (doubted && !unread.empty) unread.remove();
        // It fails when the reader leaves while it waits.
        settle().catch(() => {});
      };
      const unsubscribe = feed.subscribe(hear);
      const doubting = setInterval(() => hear({ kind: 'all' }), maxAge * 1_000);
      // Anything may have happened since the request came, and the token been revoked.
      hear({ kind: 'all' });
      await stop;
      clearInterval(doubting);
      unsubscribe();
      ended.abort();
    }, unread);
  };
}
