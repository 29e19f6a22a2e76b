/**
 * Runs subscriptions: an operation is executed again after each change of the viewer's data, until their token ends. Equal subscriptions
 * of a viewer share each result in the response cache, as equal queries do.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import type { FormattedExecutionResult } from 'graphql';
import type { Viewer, Viewers } from '../auth/viewer.ts';
import type { Config } from '../config/config.ts';
import { type ChangeFeed, concernsTokens } from '../database/feed/changeFeed.ts';
import type { TokenProblem } from '../errors.ts';
import type { Exchange } from '../http/exchange.ts';
import type { HttpResponse, StreamedResponse } from '../http/response.ts';
import type { ResponseCache } from '../http/responseCache.ts';
import type { Context } from '../schema/context.ts';
import type { Operation } from './execution.ts';
import { createKeyedQueue } from './keyedQueue.ts';
import { exactText, jsonType, notAcceptable, requestFailure, responseOf, vary } from './overHttp.ts';
import { type Ending, errorsOf, OperationFailed } from './transports/endings.ts';
import { contentTypeOf, plain, streamOf, streamTypeFor } from './transports/streams.ts';
import { createUserQuota } from './userQuota.ts';
import { eventStream, loadYoga } from './yoga.ts';

/** The longest pause between two executions for a viewer, in milliseconds. */
const longestRest = 1_000;

export interface SubscribeOptions {
  /** The parts that make the results. Their context may be another one than that of requests. */
  readonly changes: {
    readonly watchViewer: WatchViewer;
    createContext(viewer: Viewer): Context;
    readonly cache: Pick<ResponseCache, 'get' | 'compute'>;
  };
  /** Has the limit of open subscriptions of a user. Each of them may run again after every change of the user's data. */
  readonly config: Pick<Config, 'MAX_SUBSCRIPTIONS'>;
  /** Whether the viewer's token is still valid. */
  isValid(viewer: Viewer): Promise<boolean>;
  /** Aborted when the gateway closes. */
  readonly closing: AbortSignal;
}

/** A function that makes the responses of subscriptions. */
export function createSubscribe(options: SubscribeOptions) {
  const { changes, config, isValid, closing } = options;
  const open = createUserQuota(config.MAX_SUBSCRIPTIONS);
  const tooMany = `There are ${open.limit} subscriptions open; at most ${open.limit} are allowed`;
  // The subscriptions of a user are executed one after the other, each followed by a pause as long, so they delay no other user.
  const inTurn = createKeyedQueue<number>((took) => sleep(Math.min(took, longestRest)));

  /** Makes a function that returns the current result of a subscription: from the cache, or by executing it. */
  function createRun({ report }: Exchange, viewer: Viewer, operation: Operation) {
    const { cache, createContext } = changes;
    const { operationName, variables } = operation.request;
    const key = operation.readsTokens ? undefined : exactText([operation.text, operationName, variables]);
    const compute = () =>
      inTurn(viewer.id, async () => {
        // A new context has new loaders, which have not cached the data of earlier executions.
        const result = await operation.execute(createContext(viewer));
        return { response: responseOf(result, jsonType, report), isCacheable: !result.errors };
      });
    return async () => {
      if (key === undefined) return (await compute()).response;
      return (await cache.get(viewer.id, `live ${key}`)) ?? cache.compute(viewer.id, `live ${key}`, compute);
    };
  }

  return async (
    exchange: Exchange,
    viewer: Viewer,
    operation: Operation,
  ): Promise<HttpResponse | StreamedResponse> => {
    const { transport, request, report } = exchange;
    const isHttp = transport === undefined;
    const type = isHttp ? streamTypeFor(request.headers.accept) : plain;
    if (!type) return requestFailure(406, notAcceptable);
    if (type === eventStream) await loadYoga();
    if (!open.acquire(viewer.id))
      return requestFailure(429, tooMany, { 'Retry-After': '1' }, 'TOO_MANY_REQUESTS');
    const results = followChanges({
      run: createRun(exchange, viewer, operation),
      watch: (observer) => changes.watchViewer(viewer, observer),
      reason: () =>
        isValid(viewer).then(
          (valid) => (valid ? 'closing' : 'revoked'),
          () => 'failed',
        ),
      report,
      // A WebSocket closes by itself.
      closing: isHttp ? closing : undefined,
    });
    return {
      status: 200,
      headers: {
        Vary: vary,
        'Content-Type': contentTypeOf(type),
        'Cache-Control': 'no-cache',
        Connection: 'keep-alive',
      },
      ...(await streamOf(type, results)),
      ended: () => open.release(viewer.id),
    };
  };
}

interface FollowOptions {
  /** Returns the current result. */
  run(): Promise<Pick<HttpResponse, 'body' | 'errorCode'>>;
  watch(observer: ViewerObserver): ReturnType<WatchViewer>;
  /** Why the results have ended with a token that has not expired. Never rejects. */
  reason(): Promise<Ending>;
  /** Called with each error that is hidden from the client. */
  report(error: unknown): void;
  /** Aborted when the results have to end because the gateway closes. */
  readonly closing: AbortSignal | undefined;
}

/**
 * The JSON texts of a subscription's results, never the same twice in a row. A client that reads slowly misses results, and gets the
 * newest. After a temporary failure the operation is executed again later. The results end with the token, and after a result with
 * the error that the request is wrong: it would come again each time. `return` ends them at once: a pending `next` settles as well.
 * @throws {OperationFailed} by `next`, once, if the results do not end in order.
 */
export function followChanges(options: FollowOptions): AsyncIterator<string, undefined> {
  const { run, reason, report, closing } = options;
  /** Whether something may have changed since the last execution began. */
  let isDue = false;
  let isOver = false;
  /** Why they have ended, if not in order. */
  let ending: Ending | Promise<Ending> | undefined;
  let seen: string | undefined;
  let wake = () => {};
  const watch = options.watch({
    changed() {
      isDue = true;
      wake();
    },
    ended: (problem) => stop(problem === 'expired' ? problem : reason()),
  });
  const close = () => stop('closing');
  closing?.addEventListener('abort', close);
  if (closing?.aborted) close();

  function stop(why?: typeof ending): void {
    if (isOver) return;
    isOver = true;
    ending = why;
    closing?.removeEventListener('abort', close);
    watch.stop();
    wake();
  }

  /** The current result; undefined if the client may not have it, or has had it. */
  async function runOnce(): Promise<string | undefined> {
    isDue = false;
    const { body, errorCode } = await run();
    // While the token is checked, no result is delivered. When it is found valid, `changed` is called.
    if (isOver || !watch.isTrusted) return undefined;
    const text = body.toString();
    const codes = errorCode === undefined ? [] : codesIn(text);
    watch.noteResult(codes.includes('INTERNAL_SERVER_ERROR') || codes.includes('SERVICE_UNAVAILABLE'));
    if (codes.includes('BAD_USER_INPUT')) stop();
    if (text === seen) return undefined;
    seen = text;
    return text;
  }

  const untilWoken = () =>
    new Promise<undefined>((settle) => {
      wake = () => settle(undefined);
    });

  return {
    async next() {
      try {
        while (!isOver) {
          const text = isDue && watch.isTrusted ? await runOnce() : await untilWoken();
          if (text !== undefined) return { done: false, value: text };
        }
      } catch (error) {
        report(error);
        stop('failed');
      }
      const why = await ending;
      ending = undefined;
      if (why) throw new OperationFailed(errorsOf(why));
      return { done: true, value: undefined };
    },
    async return() {
      stop();
      return { done: true, value: undefined };
    },
  };
}

const codesIn = (text: string) =>
  (JSON.parse(text) as FormattedExecutionResult).errors?.map(({ extensions }) => extensions?.code) ?? [];

/** The callbacks of a subscription. */
interface ViewerObserver {
  /** Called once at the start, and after every change of the viewer's data: a selection may reach all of it. */
  changed(): void;
  /** Called once when the viewer's token is revoked or expires. No call follows. */
  ended(problem: TokenProblem): void;
}

type WatchViewer = ReturnType<typeof createWatchViewer>;

interface WatchViewerOptions {
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
export function createWatchViewer({ feed, viewers, maxAge, retryDelay = 2_000 }: WatchViewerOptions) {
  return (viewer: Viewer, { changed, ended }: ViewerObserver) => {
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

    const token = createTokenCheck({
      retryDelay,
      signal,
      async lookUp() {
        validUntil = await viewers.validUntil(viewer);
        return validUntil > 0;
      },
      onValid() {
        awaitExpiry();
        if (!signal.aborted) changed();
      },
      onRevoked: () => end('invalid'),
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
    if (validUntil !== Number.POSITIVE_INFINITY) queueMicrotask(awaitExpiry);
    return {
      /** Whether the token is known to be valid: no result may be delivered otherwise. `changed` is called once it is again. */
      get isTrusted() {
        return token.isTrusted && Date.now() < validUntil;
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

interface TokenCheckOptions {
  /** Looks the token up, and returns whether it is valid. */
  lookUp(): Promise<boolean>;
  readonly retryDelay: number;
  /** Aborted when the subscription ends. */
  readonly signal: AbortSignal;
  /** Called when the token is known to be valid: once, however often `doubt` was called during the check. */
  onValid(): void;
  onRevoked(): void;
}

/** Looks up a token each time it may have been revoked. Retries while the database fails. */
function createTokenCheck({ lookUp, retryDelay, signal, onValid, onRevoked }: TokenCheckOptions) {
  let mayBeRevoked = false;
  let isChecking = false;

  async function check(): Promise<void> {
    isChecking = true;
    while (mayBeRevoked) {
      mayBeRevoked = false;
      const found = await lookUp().catch(() => undefined);
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
