/** When subscriptions resolve: at once, and again whenever the viewer's data changes. */

import { setTimeout as sleep } from 'node:timers/promises';
import { Repeater, SlidingBuffer } from '@repeaterjs/repeater';
import type { Viewer, Viewers } from '../auth/viewer.ts';
import { type ChangeFeed, type ChangeListener, concernsTokens } from '../database/changeFeed.ts';

export interface ViewerChanges {
  /** Yields once at the start, and after changes of anything that is the viewer's: a selection may reach all of it. */
  follow(): AsyncIterable<undefined>;
  /** Must be told how resolving went: what failed is to be resolved again, although nothing has changed. */
  resolved(hasFailed: boolean): void;
}

export interface ViewerChangesOptions {
  readonly feed: ChangeFeed;
  readonly viewers: Pick<Viewers, 'isValid'>;
  /** How often, in seconds, the token is looked up again, whatever the feed says. */
  readonly maxAge: number;
  /** How long to wait, in milliseconds, before something is tried again after the database failed. */
  readonly retryDelay?: number;
}

/** The longest wait before what failed again and again is resolved once more, in milliseconds. */
const longestDelay = 30_000;

/**
 * The viewer's changes, until their token is revoked or the reader leaves. Nothing is yielded while it is not known
 * whether the token is still valid. Changes that a slow reader has not asked for yet become one, since the reader
 * resolves to the data as it is when it asks: however slow it is, it takes one place in memory.
 */
export function createViewerChanges(
  { feed, viewers, maxAge, retryDelay = 1_000 }: ViewerChangesOptions,
  viewer: Viewer,
): ViewerChanges {
  const retry = createRetry(retryDelay);
  function follow(): AsyncIterable<undefined> {
    /** What the reader has not asked for yet: the newest change replaces an older one. */
    const unread = new SlidingBuffer(1);
    return new Repeater<undefined>(async (push, stop) => {
      const ended = new AbortController();
      /** Whether the token may have been revoked since it was last looked up. */
      let mayBeRevoked = false;
      let isChecking = false;

      /** Looks the token up as often as it may have been revoked, then yields once for all changes until then. */
      async function checkAndYield(): Promise<void> {
        if (isChecking) return;
        isChecking = true;
        while (mayBeRevoked) {
          mayBeRevoked = false;
          const isValid = await viewers.isValid(viewer).catch(() => undefined);
          if (isValid === false) return stop();
          if (isValid) continue;
          mayBeRevoked = true;
          await sleep(retryDelay, undefined, { signal: ended.signal });
        }
        isChecking = false;
        // What is pushed after the end is lost, and rejects.
        push(undefined).catch(() => {});
      }

      const onChange: ChangeListener = (change) => {
        if (change.kind === 'user' && change.userId !== viewer.id) return;
        mayBeRevoked ||= concernsTokens(change);
        // Taken back: the reader must not resolve it with a token that may be revoked by now.
        if (mayBeRevoked && !unread.empty) unread.remove();
        // The wait is aborted when the reader leaves.
        checkAndYield().catch(() => {});
      };
      const unsubscribe = feed.subscribe(onChange);
      viewer.ended?.addEventListener('abort', () => stop(), { signal: ended.signal });
      const timer = setInterval(() => onChange({ kind: 'all' }), maxAge * 1_000);
      // The token may have been revoked since the request was authenticated.
      onChange({ kind: 'all' });
      retry.begin(() => onChange({ kind: 'all' }));
      await stop;
      retry.end();
      clearInterval(timer);
      unsubscribe();
      ended.abort();
    }, unread);
  }

  return { follow, resolved: retry.resolved };
}

/** Runs something again after a failure: later and later, for as long as it fails. */
function createRetry(first: number) {
  let delay = first;
  let again: (() => void) | undefined;
  let timer: NodeJS.Timeout | undefined;
  return {
    begin(run: () => void) {
      again = run;
    },
    end() {
      again = undefined;
      clearTimeout(timer);
    },
    resolved(hasFailed: boolean) {
      clearTimeout(timer);
      if (hasFailed) timer = setTimeout(() => again?.(), delay).unref();
      delay = hasFailed ? Math.min(2 * delay, longestDelay) : first;
    },
  };
}
