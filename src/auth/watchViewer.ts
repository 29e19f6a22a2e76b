/** Watches viewers: calls back after each change of their data, and once their token is revoked or expires. */

import { setTimeout as sleep } from 'node:timers/promises';
import { type ChangeFeed, concernsTokens } from '../database/feed/changeFeed.ts';
import type { TokenProblem } from '../errors.ts';
import { hasExpired, type Viewer, type Viewers } from './viewer.ts';

/** The callbacks of a subscription. */
export interface ViewerObserver {
  /** Called once at the start, and after every change of the viewer's data: a selection may reach all of it. */
  changed(): void;
  /** Called once when the viewer's token is revoked or expires. No call follows. */
  ended(problem: TokenProblem): void;
}

export type WatchViewer = ReturnType<typeof createWatchViewer>;

interface WatchViewerOptions {
  readonly feed: ChangeFeed;
  readonly viewers: Pick<Viewers, 'findAgain'>;
  /** Interval in seconds at which the token is looked up even if the feed reports nothing. */
  readonly maxAge: number;
  /** Delay in milliseconds before a retry after the database, or an execution, has failed. */
  readonly retryDelay?: number;
}

/** The longest pause, in milliseconds, between two looks at the clock, which may be set. */
const longestTrust = 30_000;

/** Watches viewers, each until their token is revoked or expires, or the subscription ends. */
export function createWatchViewer({ feed, viewers, maxAge, retryDelay = 2_000 }: WatchViewerOptions) {
  return (viewer: Viewer, { changed, ended }: ViewerObserver) => {
    const stopped = new AbortController();
    const { signal } = stopped;

    let expiry: NodeJS.Timeout | undefined;

    function end(problem: TokenProblem): void {
      if (signal.aborted) return;
      stopped.abort();
      ended(problem);
    }

    /** Ends the watch of an expired token, and returns whether it has ended. */
    function endIfExpired(): boolean {
      if (hasExpired(token.viewer)) end('expired');
      return signal.aborted;
    }

    function awaitExpiry(): void {
      clearTimeout(expiry);
      const { expiresAt = Number.POSITIVE_INFINITY } = token.viewer;
      if (expiresAt === Number.POSITIVE_INFINITY || endIfExpired()) return;
      expiry = setTimeout(awaitExpiry, Math.min(expiresAt - Date.now(), longestTrust));
    }

    const token = createTokenCheck(viewer, viewers.findAgain, retryDelay, signal, (isValid) => {
      if (!isValid) return end('invalid');
      awaitExpiry();
      if (!signal.aborted) changed();
    });
    const unsubscribe = feed.subscribe((change) => {
      if (change.kind === 'user' && change.userId !== viewer.id) return;
      if (endIfExpired()) return;
      if (concernsTokens(change)) token.doubt();
      // A change during a token check is reported at the end of the check.
      else if (token.isTrusted) changed();
    });
    const timer = setInterval(token.doubt, maxAge * 1_000);
    let retry: NodeJS.Timeout | undefined;
    signal.addEventListener('abort', () => {
      clearInterval(timer);
      clearTimeout(retry);
      clearTimeout(expiry);
      unsubscribe();
    });
    viewer.ended?.addEventListener('abort', () => end('invalid'), { signal });
    // The token may have been revoked since the request was authenticated.
    if (viewer.ended?.aborted) queueMicrotask(() => end('invalid'));
    else token.doubt();
    queueMicrotask(awaitExpiry);
    return {
      /** The viewer as the token was last found: it may have been narrowed, or its secret replaced. */
      viewerNow: () => token.viewer,
      /** Whether the token is known to be valid: no result may be delivered otherwise. `changed` is called as soon as it is valid again. */
      get isTrusted() {
        return token.isTrusted && !hasExpired(token.viewer);
      },
      /** Must be called after each execution. A failed one is retried, although nothing has changed. */
      noteResult(hasFailed: boolean): void {
        clearTimeout(retry);
        if (hasFailed && !signal.aborted) retry = setTimeout(token.doubt, retryDelay).unref();
      },
      /** Must be called when the subscription ends. */
      stop: () => stopped.abort(),
    };
  };
}

/**
 * Looks up a token each time it may have been revoked. Retries while the database fails.
 * @param signal aborted when the subscription ends.
 * @param onChecked called after each check with whether the token is valid: once, however often `doubt` was called during the check.
 */
function createTokenCheck(
  given: Viewer,
  lookUp: Viewers['findAgain'],
  retryDelay: number,
  signal: AbortSignal,
  onChecked: (isValid: boolean) => void,
) {
  let viewer = given;
  let mayBeRevoked = false;
  let isChecking = false;

  async function check(): Promise<void> {
    isChecking = true;
    while (mayBeRevoked) {
      mayBeRevoked = false;
      const found = await lookUp(viewer).catch(() => undefined);
      if (found === null) return onChecked(false);
      viewer = found ?? viewer;
      if (found) continue;
      mayBeRevoked = true;
      await sleep(retryDelay, undefined, { signal });
    }
    isChecking = false;
    if (!signal.aborted) onChecked(true);
  }

  return {
    get viewer() {
      return viewer;
    },
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
