/**
 * Runs subscriptions: the operation is executed again after each change of the viewer's data, until their token ends. Equal subscriptions
 * of a viewer share each result in the response cache, as equal queries do. Yoga's plugin for live queries is told what has changed by
 * code that writes; here any program that writes to the database is heard of.
 */

import { type ExecutionResult, type FormattedExecutionResult, GraphQLError } from 'graphql';
import { mapAsyncIterator, type YogaServer } from 'graphql-yoga';
import type { Viewer } from '../../auth/viewer.ts';
import type { ViewerObserver, WatchViewer } from '../../auth/watchViewer.ts';
import type { Config } from '../../config/config.ts';
import { createUserQueue } from '../../http/keyedQueue.ts';
import type { HttpResponse } from '../../http/response.ts';
import type { ResponseCache } from '../../http/responseCache.ts';
import { createUserQuota } from '../../http/userQuota.ts';
import type { Context } from '../../schema/context.ts';
import type { GatewayContext, GatewayPlugin } from '../context.ts';
import { jsonType, notAcceptable, responseOf, withText } from '../overHttp.ts';
import { type Ending, errorsOf, OperationFailed } from '../transports/endings.ts';
import { exactText } from '../values.ts';
import { noteErrors } from './errors.ts';

export interface LiveQueryOptions {
  readonly watchViewer: WatchViewer;
  readonly cache: Pick<ResponseCache, 'get' | 'compute'>;
  /** Has the limit of open subscriptions of a user. Each of them may run again after every change of the user's data. */
  readonly config: Pick<Config, 'MAX_SUBSCRIPTIONS'>;
  /** Makes the contexts of executions. */
  createContext(viewer: Viewer): Context;
  /** Whether the viewer's token is still valid. */
  isValid(viewer: Viewer): Promise<boolean>;
  /** Aborted when the gateway closes. */
  readonly closing: AbortSignal;
  /** Whether other plugins read the results, and not only their texts. */
  readonly areResultsRead: boolean;
}

export function useLiveQueries(options: LiveQueryOptions): GatewayPlugin {
  const { watchViewer, isValid, areResultsRead } = options;
  const open = createUserQuota(options.config.MAX_SUBSCRIPTIONS);
  let runnerFor: ReturnType<typeof createRunners> | undefined;

  function follow(context: GatewayContext): AsyncIterableIterator<ExecutionResult> {
    const { exchange, viewer, progress } = context;
    const results = followChanges({
      run: runnerFor?.(context) ?? (() => Promise.reject(new Error('Yoga has not begun'))),
      watch: (observer) => watchViewer(viewer, observer),
      reason: () =>
        isValid(viewer).then(
          (valid) => (valid ? 'closing' : 'revoked'),
          () => 'failed',
        ),
      report: exchange.report,
      // A WebSocket closes by itself.
      closing: exchange.transport === undefined ? options.closing : undefined,
      stopped: () => open.release(viewer.id),
    });
    progress.end = results.return;
    // Only another plugin reads more of a result than its text.
    return mapAsyncIterator(results, (text) => withText(areResultsRead ? JSON.parse(text) : {}, text));
  }

  return {
    onYogaInit({ yoga }) {
      runnerFor = createRunners(yoga.getEnveloped, options);
    },

    onSubscribe({ context, setSubscribeFn, setResultAndStopExecution }) {
      const { viewer, exchange, accepted } = context;
      if (exchange.transport === undefined && !accepted.stream)
        return setResultAndStopExecution({ errors: [noStream] });
      // A plugin of others may still refuse the subscription: it counts once it begins.
      setSubscribeFn(() => (open.acquire(viewer.id) ? follow(context) : { errors: [tooMany(open.limit)] }));
    },
  };
}

const noStream = new GraphQLError(notAcceptable, {
  extensions: { code: 'BAD_USER_INPUT', http: { status: 406 } },
});

const tooMany = (limit: number) =>
  new GraphQLError(`There are ${limit} subscriptions open; at most ${limit} are allowed`, {
    extensions: {
      code: 'TOO_MANY_REQUESTS',
      retryAfter: 1,
      http: { status: 429, headers: { 'Retry-After': '1' } },
    },
  });

/** Makes a function that returns the current result of a subscription: from the cache, or by executing it. */
function createRunners(
  getEnveloped: YogaServer<object, object>['getEnveloped'],
  { cache, createContext }: LiveQueryOptions,
) {
  // The subscriptions of a user delay no other user.
  const inTurn = createUserQueue();

  async function execute(context: GatewayContext, viewer: Viewer) {
    const { params, progress } = context;
    // It has new loaders, which have not cached the data of earlier executions.
    const fresh = { ...context, ...createContext(viewer) };
    const { schema, contextFactory, execute } = getEnveloped(fresh);
    const { document, variables } = progress;
    const result: ExecutionResult = await execute({
      schema,
      document: document?.document,
      contextValue: await contextFactory(),
      variableValues: variables,
      operationName: params.operationName,
    });
    noteErrors(result, context);
    return result;
  }

  return (context: GatewayContext) => {
    const { params, progress } = context;
    const { operation } = progress;
    const key = operation?.readsTokens(params.variables)
      ? undefined
      : exactText([params.query, params.operationName, params.variables]);
    return async (viewer: Viewer) => {
      const compute = () =>
        inTurn(viewer.id, async () => {
          const result = await execute(context, viewer);
          return { response: responseOf(result, jsonType), isCacheable: !result.errors };
        });
      if (key === undefined) return (await compute()).response;
      return (await cache.get(viewer.id, `live ${key}`)) ?? cache.compute(viewer.id, `live ${key}`, compute);
    };
  };
}

interface FollowOptions {
  /** Returns the current result for the viewer as the token is now. */
  run(viewer: Viewer): Promise<Pick<HttpResponse, 'body' | 'errorCode'>>;
  watch(observer: ViewerObserver): ReturnType<WatchViewer>;
  /** Why the results have ended with a token that has not expired. Never rejects. */
  reason(): Promise<Ending>;
  /** Called with each error that is hidden from the client. */
  report(error: unknown): void;
  /** Aborted when the results have to end because the gateway closes. */
  readonly closing: AbortSignal | undefined;
  /** Called once, when the results have ended. */
  stopped(): void;
}

/** Results that can be ended at any time. */
type FollowedResults = Required<Pick<AsyncIterator<string, undefined>, 'next' | 'return'>>;

/**
 * The JSON texts of a subscription's results, never the same twice in a row. A client that reads slowly misses results, and gets the
 * newest. After a temporary failure the operation is executed again later. The results end with the token, and after a result with
 * the error that the request is wrong: it would come again each time. `return` ends them at once: a pending `next` settles as well.
 * @throws {OperationFailed} by `next`, once, if the results do not end in order.
 */
export function followChanges(options: FollowOptions): FollowedResults {
  const { run, reason, report, closing, stopped } = options;
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
    stopped();
  }

  const untilWoken = () =>
    new Promise<undefined>((settle) => {
      wake = () => settle(undefined);
    });

  /** The current result; undefined if the client may not have it, or has had it. */
  async function runOnce(): Promise<string | undefined> {
    isDue = false;
    const viewer = watch.viewerNow();
    const { body, errorCode } = await run(viewer);
    // While the token is checked, no result is delivered, and none for what it was before. When it is found valid, `changed` is called.
    if (isOver || !watch.isTrusted || viewer !== watch.viewerNow()) return undefined;
    const text = body.toString();
    const codes = errorCode === undefined ? [] : codesIn(text);
    watch.noteResult(codes.includes('INTERNAL_SERVER_ERROR') || codes.includes('SERVICE_UNAVAILABLE'));
    if (codes.includes('BAD_USER_INPUT')) stop();
    if (text === seen) return undefined;
    seen = text;
    return text;
  }

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
