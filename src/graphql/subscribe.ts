/**
 * Runs subscriptions: an operation is executed again after each change of the viewer's data. Equal subscriptions of a viewer share
 * each result in the response cache, as equal queries do.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import type { FormattedExecutionResult } from 'graphql';
import type { Viewer } from '../auth/viewer.ts';
import type { Config } from '../config/config.ts';
import type { TokenProblem } from '../errors.ts';
import type { Exchange } from '../http/exchange.ts';
import type { HttpResponse, StreamedResponse } from '../http/response.ts';
import type { ResponseCache } from '../http/responseCache.ts';
import type { Context } from '../schema/context.ts';
import type { WatchViewer } from '../schema/subscriptions.ts';
import type { Operation } from './execution.ts';
import { createKeyedQueue } from './keyedQueue.ts';
import {
  exactText,
  jsonType,
  notAcceptable,
  requestFailure,
  responseOf,
  tooManyFailure,
  vary,
} from './overHttp.ts';
import { type Ending, framingFor, plain, type Results, streamOf } from './transports/framing.ts';
import { createUserQuota } from './userQuota.ts';

/** The longest pause between two executions for a viewer, in milliseconds. */
const longestRest = 1_000;

/** How often, in milliseconds, a stream without results sends a heartbeat. */
const heartbeat = 12_000;

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

type Subscribe = (
  exchange: Exchange,
  viewer: Viewer,
  operation: Pick<Operation, 'request' | 'text' | 'readsTokens' | 'execute'>,
) => Promise<HttpResponse | StreamedResponse>;

/** A function that makes the responses of subscriptions. */
export function createSubscribe(options: SubscribeOptions): Subscribe {
  const { changes, config, isValid, closing } = options;
  const open = createUserQuota(config.MAX_SUBSCRIPTIONS);
  const tooMany = `There are ${open.limit} subscriptions open; at most ${open.limit} are allowed`;
  // The subscriptions of a user are executed one after the other, each followed by a pause as long, so they delay no other user.
  const inTurn = createKeyedQueue<number>((took) => sleep(Math.min(took, longestRest)));

  /** Makes a function that returns the current result of a subscription: from the cache, or by executing it. */
  function createRun({ report }: Exchange, viewer: Viewer, operation: Parameters<Subscribe>[2]) {
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

  return async (exchange, viewer, operation) => {
    const { transport, request, report } = exchange;
    const framing = transport === undefined ? framingFor(request.headers.accept) : plain;
    if (!framing) return requestFailure(406, notAcceptable);
    if (!open.acquire(viewer.id)) return tooManyFailure(tooMany);
    const results = followChanges({
      run: createRun(exchange, viewer, operation),
      watch: (observer) => changes.watchViewer(viewer, observer),
      reason: async () => ((await isValid(viewer)) ? 'closing' : 'revoked'),
    });
    const stream = streamOf(results, { framing, heartbeat, report, closing });
    const ended = () => open.release(viewer.id);
    return { status: 200, headers: { Vary: vary, ...framing.headers }, stream, ended };
  };
}

export interface FollowOptions {
  /** Returns the current result. */
  run(): Promise<Pick<HttpResponse, 'body' | 'errorCode'>>;
  watch(observer: Parameters<WatchViewer>[1]): ReturnType<WatchViewer>;
  /** Why the results have ended with a token that has not expired. */
  reason(): Promise<Ending>;
}

/**
 * The results of a subscription, never the same twice in a row. A client that reads slowly misses results, and gets the newest.
 * After a temporary failure the operation is executed again later. The results end with the token, and after a result with
 * the error that the request is wrong: it would come again each time.
 */
export function followChanges({ run, watch: watchBy, reason }: FollowOptions): Results {
  /** Whether something may have changed since the last execution began. */
  let isDue = false;
  let isOver = false;
  let tokenProblem: TokenProblem | undefined;
  let seen: string | undefined;
  let wake = () => {};
  const watch = watchBy({
    changed() {
      isDue = true;
      wake();
    },
    ended(problem) {
      tokenProblem = problem;
      stop();
    },
  });

  function stop(): void {
    isOver = true;
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

  return {
    stop,
    async next() {
      while (!isOver) {
        if (isDue && watch.isTrusted) {
          const value = await runOnce();
          if (value !== undefined) return { done: false, value };
        } else {
          await new Promise<void>((settle) => {
            wake = settle;
          });
        }
      }
      return { done: true, value: tokenProblem === 'expired' ? 'expired' : tokenProblem && (await reason()) };
    },
  };
}

const codesIn = (text: string) =>
  (JSON.parse(text) as FormattedExecutionResult).errors?.map(({ extensions }) => extensions?.code) ?? [];
