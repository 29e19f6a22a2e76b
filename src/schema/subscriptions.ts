/** Watches the viewers of subscriptions: reports changes of a viewer's data, and the end of their token. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { Viewer, Viewers } from '../auth/viewer.ts';
import { type ChangeFeed, type ChangeListener, concernsTokens } from '../database/feed/changeFeed.ts';

/** The callbacks of a subscription. */
export interface ViewerObserver {
  /** Called once at the start, and after every change of the viewer's data: a selection may reach all of it. */
  changed(): void;
  /** Called once when the viewer's token is revoked. No call follows. */
  ended(): void;
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
  readonly viewers: Pick<Viewers, 'isValid'>;
  /** Interval in seconds at which the token is looked up even if the feed reports nothing. */
  readonly maxAge: number;
  /** Delay in milliseconds before a retry after the database, or an execution, has failed. */
  readonly retryDelay?: number;
}

/** Watches viewers, each until their token is revoked or the subscription ends. */
export function createWatchViewer({
  feed,
  viewers,
  maxAge,
  retryDelay = 2_000,
}: WatchViewerOptions): WatchViewer {
  return (viewer, { changed, ended }) => {
    const stopped = new AbortController();
    const { signal } = stopped;

    function end(): void {
      if (signal.aborted) return;
      stopped.abort();
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
      // A change during a token check is reported at the end of the check.
      else if (token.isTrusted) changed();
    };
    const unsubscribe = feed.subscribe(onChange);
    const timer = setInterval(token.doubt, maxAge * 1_000);
    let retry: NodeJS.Timeout | undefined;
    signal.addEventListener('abort', () => {
      clearInterval(timer);
      clearTimeout(retry);
      unsubscribe();
    });
    viewer.ended?.addEventListener('abort', end, { signal });
    // The token may have been revoked since the request was authenticated.
    if (viewer.ended?.aborted) queueMicrotask(end);
    else token.doubt();
    return {
      get isTrusted() {
        return token.isTrusted;
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
