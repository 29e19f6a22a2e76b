/** When subscriptions resolve: at once, and again whenever the viewer's data changes. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { Viewer, Viewers } from '../auth/viewer.ts';
import { type ChangeFeed, type ChangeListener, concernsTokens } from '../database/changeFeed.ts';

/** Who is told of a viewer's changes. */
export interface Follower {
  /** Called once at the start, and after changes of anything that is the viewer's: a selection may reach all of it. */
  changed(): void;
  /** Called when the viewer's token is revoked, once and at last. */
  ended(): void;
}

export interface Following {
  /**
   * Whether the token is known to be valid. While it is not, nothing may be delivered, not even what was read before;
   * `changed` is called when it is again.
   */
  readonly isTrusted: boolean;
  /** Must be called where something may have been missed: has the token looked up, and `changed` called. */
  distrust(): void;
  /** Must be told how resolving went: what failed is to be resolved again, although nothing has changed. */
  resolved(hasFailed: boolean): void;
  /** Must be called when the follower leaves. */
  stop(): void;
}

export type Follow = (viewer: Viewer, follower: Follower) => Following;

export interface FollowOptions {
  readonly feed: ChangeFeed;
  readonly viewers: Pick<Viewers, 'isValid'>;
  /** How often, in seconds, the token is looked up again, whatever the feed says. */
  readonly maxAge: number;
  /** How long to wait, in milliseconds, before something is tried again after the database failed. */
  readonly retryDelay?: number;
}

/** The longest wait before what failed again and again is resolved once more, in milliseconds. */
const longestDelay = 30_000;

/** Follows the changes of viewers, each until their token is revoked or the follower leaves. */
export function createFollow({ feed, viewers, maxAge, retryDelay = 1_000 }: FollowOptions): Follow {
  return (viewer, follower) => {
    const leaving = new AbortController();
    /** Whether the token may have been revoked since it was last looked up. */
    let mayBeRevoked = false;
    let isChecking = false;

    function stop(): void {
      if (leaving.signal.aborted) return;
      leaving.abort();
      retry.end();
      clearInterval(timer);
      unsubscribe();
    }

    function end(): void {
      if (leaving.signal.aborted) return;
      stop();
      follower.ended();
    }

    /** Looks the token up as often as it may have been revoked, then tells once of all changes until then. */
    async function check(): Promise<void> {
      isChecking = true;
      while (mayBeRevoked) {
        mayBeRevoked = false;
        const isValid = await viewers.isValid(viewer).catch(() => undefined);
        if (isValid === false) return end();
        if (isValid) continue;
        mayBeRevoked = true;
        await sleep(retryDelay, undefined, { signal: leaving.signal });
      }
      isChecking = false;
      if (!leaving.signal.aborted) follower.changed();
    }

    const onChange: ChangeListener = (change) => {
      if (change.kind === 'user' && change.userId !== viewer.id) return;
      mayBeRevoked ||= concernsTokens(change);
      if (isChecking) return;
      // The wait of a check is aborted when the follower leaves.
      if (mayBeRevoked) check().catch(() => {});
      else follower.changed();
    };
    const distrust = () => onChange({ kind: 'all' });

    const unsubscribe = feed.subscribe(onChange);
    const timer = setInterval(distrust, maxAge * 1_000);
    const retry = createRetry(retryDelay, distrust);
    viewer.ended?.addEventListener('abort', end, { signal: leaving.signal });
    // The token may have been revoked since the request was authenticated.
    if (viewer.ended?.aborted) queueMicrotask(end);
    else distrust();
    return {
      get isTrusted() {
        return !mayBeRevoked && !isChecking;
      },
      distrust,
      resolved: retry.resolved,
      stop,
    };
  };
}

/** Runs something again after a failure: later and later, for as long as it fails. */
function createRetry(first: number, again: () => void) {
  let delay = first;
  let hasEnded = false;
  let timer: NodeJS.Timeout | undefined;
  return {
    end() {
      hasEnded = true;
      clearTimeout(timer);
    },
    resolved(hasFailed: boolean) {
      clearTimeout(timer);
      if (hasFailed && !hasEnded) timer = setTimeout(again, delay).unref();
      delay = hasFailed ? Math.min(2 * delay, longestDelay) : first;
    },
  };
}
