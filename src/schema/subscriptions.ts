/** When subscriptions resolve: at once, and again whenever the viewer's data changes. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { Viewer, Viewers } from '../auth/viewer.ts';
import { type ChangeFeed, type ChangeListener, concernsTokens } from '../database/feed/changeFeed.ts';

/** Who is told of a viewer's changes. */
export interface ViewerObserver {
  /** Called once at the start, and after changes of anything that is the viewer's: a selection may reach all of it. */
  changed(): void;
  /** Called when the viewer's token is revoked, once and at last. */
  ended(): void;
}

export interface ViewerWatch {
  /**
   * Whether the token is known to be valid. While it is not, nothing may be delivered, not even what was read before;
   * `changed` is called when it is again.
   */
  readonly isTrusted: boolean;
  /** Must be called where something may have been missed: has the token looked up, and `changed` called. */
  recheckToken(): void;
  /** Must be told how resolving went: what failed is to be resolved again, although nothing has changed. */
  noteResult(hasFailed: boolean): void;
  /** Must be called when the follower leaves. */
  stop(): void;
}

export type WatchViewer = (viewer: Viewer, follower: ViewerObserver) => ViewerWatch;

export interface WatchViewerOptions {
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
export function createWatchViewer({
  feed,
  viewers,
  maxAge,
  retryDelay = 1_000,
}: WatchViewerOptions): WatchViewer {
  return (viewer, { changed, ended }) => {
    const leaving = new AbortController();
    const { signal } = leaving;

    function stop(): void {
      if (signal.aborted) return;
      leaving.abort();
      retry.end();
      clearInterval(timer);
      unsubscribe();
    }

    function end(): void {
      if (signal.aborted) return;
      stop();
      ended();
    }

    const token = createTokenCheck(() => viewers.isValid(viewer), {
      retryDelay,
      signal,
      onValid: changed,
      onRevoked: end,
    });
    const onChange: ChangeListener = (change) => {
      if (change.kind === 'user' && change.userId !== viewer.id) return;
      if (concernsTokens(change)) token.doubt();
      // What changes during a check is told of at its end.
      else if (token.isTrusted) changed();
    };
    const unsubscribe = feed.subscribe(onChange);
    const timer = setInterval(token.doubt, maxAge * 1_000);
    const retry = createRetry(retryDelay, token.doubt);
    viewer.ended?.addEventListener('abort', end, { signal });
    // The token may have been revoked since the request was authenticated.
    if (viewer.ended?.aborted) queueMicrotask(end);
    else token.doubt();
    return {
      get isTrusted() {
        return token.isTrusted;
      },
      recheckToken: token.doubt,
      noteResult: retry.resolved,
      stop,
    };
  };
}

interface TokenCheckOptions {
  readonly retryDelay: number;
  /** Aborted when nobody wants to know any more. */
  readonly signal: AbortSignal;
  /** Called when the token is known to be valid, once however often it came into doubt meanwhile. */
  onValid(): void;
  onRevoked(): void;
}

/** Looks a token up as often as it may have been revoked, again and again while the database cannot say. */
function createTokenCheck(
  isValid: () => Promise<boolean>,
  { retryDelay, signal, onValid, onRevoked }: TokenCheckOptions,
) {
  let mayBeRevoked = false;
  let isChecking = false;

  async function check(): Promise<void> {
    isChecking = true;
    while (mayBeRevoked) {
      mayBeRevoked = false;
      const found = await isValid().catch(() => undefined);
      if (found === false) return onRevoked();
      if (found) continue;
      mayBeRevoked = true;
      await sleep(retryDelay, undefined, { signal });
    }
    isChecking = false;
    if (!signal.aborted) onValid();
  }

  return {
    get isTrusted() {
      return !mayBeRevoked && !isChecking;
    },
    doubt(): void {
      mayBeRevoked = true;
      // The wait of a check is aborted with the signal.
      if (!isChecking) check().catch(() => {});
    },
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
