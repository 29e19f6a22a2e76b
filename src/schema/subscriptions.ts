/** Watches the viewers of subscriptions: reports changes of a viewer's data, and the end of their token. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { Viewer, Viewers } from '../auth/viewer.ts';
import { type ChangeFeed, type ChangeListener, concernsTokens } from '../database/feed/changeFeed.ts';
import type { TokenProblem } from '../errors.ts';

/** The callbacks of a subscription. */
export interface ViewerObserver {
  /** Called once at the start, and after every change of the viewer's data: a selection may reach all of it. */
  changed(): void;
  /** Called once when the viewer's token is revoked or expires. No call follows. */
  ended(problem: TokenProblem): void;
}

export interface ViewerWatch {
  /**
   * Whether the token is known to be valid. While it is not, no result may be delivered, not even one that was read before.
   * `changed` is called when the token is known to be valid again.
   */
  readonly isTrusted: boolean;
  /** Must be called after each execution. A failed one is retried, although nothing has changed. */
  noteResult(hasFailed: boolean): void;
  /** Must be called when the subscription ends. */
  stop(): void;
}

export type WatchViewer = (viewer: Viewer, observer: ViewerObserver) => ViewerWatch;

export interface WatchViewerOptions {
  readonly feed: ChangeFeed;
  readonly viewers: Pick<Viewers, 'validUntil'>;
  /** Interval in seconds at which the token is looked up even if the feed reports nothing. */
  readonly maxAge: number;
  /** Delay in milliseconds before a retry after the database, or an execution, has failed. */
  readonly retryDelay?: number;
}

/** The longest pause, in milliseconds, between two looks at the clock, which may be set. */
const longestTrust = 30_000;

/** Watches viewers, each until their token is revoked or expires, or the subscription ends. */
export function createWatchViewer({
  feed,
  viewers,
  maxAge,
  retryDelay = 2_000,
}: WatchViewerOptions): WatchViewer {
  return (viewer, { changed, ended }) => {
    const stopped = new AbortController();
    const { signal } = stopped;

    let validUntil = viewer.expiresAt ?? Number.POSITIVE_INFINITY;
    let expiry: NodeJS.Timeout | undefined;

    function end(problem: TokenProblem): void {
      if (signal.aborted) return;
      stopped.abort();
      ended(problem);
    }

    /** Ends the watch of an expired token, and returns whether it has ended. */
    function endIfExpired(): boolean {
      if (validUntil <= Date.now()) end('expired');
      return signal.aborted;
    }

    function awaitExpiry(): void {
      clearTimeout(expiry);
      if (validUntil === Number.POSITIVE_INFINITY || endIfExpired()) return;
      expiry = setTimeout(awaitExpiry, Math.min(validUntil - Date.now(), longestTrust));
    }

    async function isValid(): Promise<boolean> {
      validUntil = await viewers.validUntil(viewer);
      return validUntil > 0;
    }

    const token = createTokenCheck(isValid, {
      retryDelay,
      signal,
      onValid() {
        awaitExpiry();
        if (!signal.aborted) changed();
      },
      onRevoked: () => end('invalid'),
    });
    const onChange: ChangeListener = (change) => {
      if (change.kind === 'user' && change.userId !== viewer.id) return;
      if (endIfExpired()) return;
      if (concernsTokens(change)) token.doubt();
      // A change during a token check is reported at the end of the check.
      else if (token.isTrusted) changed();
    };
    const unsubscribe = feed.subscribe(onChange);
    const timer = setInterval(token.doubt, maxAge * 1_000);
    let retry: NodeJS.Timeout | undefined;
    signal.addEventListener('abort', () => {
      clearInterval(timer);
      clearTimeout(retry);
      clearTimeout(expiry);
      unsubscribe();
    });
    const endNow = () => end('invalid');
    viewer.ended?.addEventListener('abort', endNow, { signal });
    // The token may have been revoked since the request was authenticated.
    if (viewer.ended?.aborted) queueMicrotask(endNow);
    else token.doubt();
    if (validUntil !== Number.POSITIVE_INFINITY) queueMicrotask(awaitExpiry);
    return {
      get isTrusted() {
        return token.isTrusted && Date.now() < validUntil;
      },
      noteResult(hasFailed) {
        clearTimeout(retry);
        if (hasFailed && !signal.aborted) retry = setTimeout(token.doubt, retryDelay).unref();
      },
      stop: () => stopped.abort(),
    };
  };
}

interface TokenCheckOptions {
  readonly retryDelay: number;
  /** Aborted when the subscription ends. */
  readonly signal: AbortSignal;
  /** Called when the token is known to be valid: once, however often `doubt` was called during the check. */
  onValid(): void;
  onRevoked(): void;
}

/** Looks up a token each time it may have been revoked. Retries while the database fails. */
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
