/**
 * Reads that run again after each change of the viewer's data, until the viewer's token ends: subscriptions of GraphQL, and followed
 * routes of REST. Equal reads of a viewer share each response in the response cache, as equal requests do.
 */

import type { GraphQLFormattedError } from 'graphql';
import type { Viewer } from '../auth/viewer.ts';
import type { WatchViewer } from '../auth/watchViewer.ts';
import type { Config } from '../config/config.ts';
import { createUserQueue } from '../database/turns.ts';
import { type ErrorCode, messages, tooManySubscriptions, unauthorizedMessage } from '../errors.ts';
import type { Exchange } from '../http/exchange.ts';
import type { HttpResponse } from '../http/response.ts';
import type { ResponseCache } from '../http/responseCache.ts';
import type { Computed } from '../http/task.ts';
import { createUserQuota } from '../http/userQuota.ts';
import type { Context } from './context.ts';

interface LiveReadsOptions {
  readonly watchViewer: WatchViewer;
  readonly cache: Pick<ResponseCache, 'get' | 'compute'>;
  /** Has the limit of open live reads of a user. Each of them may run again after every change of the user's data. */
  readonly config: Pick<Config, 'MAX_SUBSCRIPTIONS'>;
  /** Makes the contexts of executions. */
  createContext(viewer: Viewer): Context;
  /** Whether the viewer's token is still valid. */
  isValid(viewer: Viewer): Promise<boolean>;
  /** Aborted when the gateway closes. */
  readonly closing: AbortSignal;
}

/** What is read, and how its responses are judged. */
interface LiveRead {
  readonly exchange: Exchange;
  readonly viewer: Viewer;
  /** The key of the response in the cache; undefined for one that is never cached. */
  readonly key: string | undefined;
  /** Reads by a context with new loaders, which have not cached the data of earlier executions. */
  read(context: Context): Promise<Computed>;
  /** Whether the read has failed, and is to be repeated; and whether the response is the last: it would come again each time. */
  judge(response: HttpResponse): { readonly hasFailed: boolean; readonly isLast: boolean };
  /** The entity tag of the response that the client has already. */
  readonly seen?: string | undefined;
}

export type LiveReads = ReturnType<typeof createLiveReads>;

export function createLiveReads(options: LiveReadsOptions) {
  const { cache, createContext } = options;
  const open = createUserQuota(options.config.MAX_SUBSCRIPTIONS);
  // The live reads of a user delay no other user.
  const inTurn = createUserQueue();

  return {
    /** The message for a user who has reached the limit. */
    tooMany: tooManySubscriptions(open.limit),

    /** The responses now and after each change; undefined if the user has reached the limit. */
    follow(live: LiveRead): FollowedResponses | undefined {
      const { exchange, viewer, key } = live;
      if (!open.acquire(viewer.id)) return undefined;
      exchange.isInQuota = true;
      const run = async (now: Viewer) => {
        const compute = () => inTurn(now.id, () => live.read(createContext(now)));
        if (key === undefined) return (await compute()).response;
        return (await cache.get(now.id, key)) ?? cache.compute(now.id, key, compute);
      };
      return followChanges(options, live, run, () => open.release(viewer.id));
    },
  };
}

/** Responses that can be ended at any time. */
type FollowedResponses = Required<Pick<AsyncIterator<HttpResponse, undefined>, 'next' | 'return'>>;

/**
 * The responses to a live read, never the same twice in a row. A client that reads slowly misses some, and gets the newest. After a
 * temporary failure the read is repeated later. The responses end with the token, and after one that is the last. `return` ends them at
 * once: a pending `next` settles as well.
 * @param run returns the current response for the viewer as the token is now.
 * @param stopped called once, when the responses have ended.
 * @throws {OperationFailed} by `next`, once, if the responses do not end in order.
 */
export function followChanges(
  options: Pick<LiveReadsOptions, 'watchViewer' | 'isValid' | 'closing'>,
  { exchange, viewer, judge, seen }: Pick<LiveRead, 'exchange' | 'viewer' | 'judge' | 'seen'>,
  run: (viewer: Viewer) => Promise<HttpResponse>,
  stopped: () => void,
): FollowedResponses {
  // A WebSocket closes by itself.
  const closing = exchange.transport === undefined ? options.closing : undefined;
  /** Whether something may have changed since the last execution began. */
  let isDue = false;
  let isOver = false;
  /** Why they have ended, if not in order. */
  let ending: Ending | Promise<Ending> | undefined;
  const isRepeated = createRepetitionCheck(seen);
  let wake = () => {};
  const watch = options.watchViewer(viewer, {
    changed() {
      isDue = true;
      wake();
    },
    ended: (problem) => stop(problem === 'expired' ? problem : reasonFor(options.isValid(viewer))),
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

  /** The current response; undefined if the client may not have it, or has had it. */
  async function runOnce(): Promise<HttpResponse | undefined> {
    isDue = false;
    const now = watch.viewerNow();
    const response = await run(now);
    // While the token is checked, nothing is delivered, and nothing for what it was before. When it is found valid, `changed` is called.
    if (isOver || !watch.isTrusted || now !== watch.viewerNow()) return undefined;
    const { hasFailed, isLast } = judge(response);
    watch.noteResult(hasFailed);
    if (isLast) stop();
    return isRepeated(response) ? undefined : response;
  }

  return {
    async next() {
      try {
        while (!isOver) {
          const response = isDue && watch.isTrusted ? await runOnce() : await untilWoken();
          if (response !== undefined) return { done: false, value: response };
        }
      } catch (error) {
        exchange.report(error);
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

/** Why responses have ended with a token that has not expired. Never rejects. */
const reasonFor = (isValid: Promise<boolean>): Promise<Ending> =>
  isValid.then(
    (valid) => (valid ? 'closing' : 'revoked'),
    () => 'failed',
  );

/**
 * Returns a function that tells whether a response is the same as the one before.
 * @param seen the entity tag of the response before the first.
 */
function createRepetitionCheck(seen: string | undefined) {
  // Equal reads share the bytes.
  let last: Buffer | undefined;
  return ({ body, validator }: HttpResponse): boolean => {
    const isRepeated = last ? last.equals(body) : validator !== undefined && validator.etag === seen;
    last = body;
    return isRepeated;
  };
}

/** Why results end although the client wants more. */
export type Ending = keyof typeof endings;

const endings = {
  revoked: { message: unauthorizedMessage('invalid'), code: 'UNAUTHENTICATED' },
  expired: { message: unauthorizedMessage('expired'), code: 'UNAUTHENTICATED' },
  failed: { message: messages.internal, code: 'INTERNAL_SERVER_ERROR' },
  closing: { message: messages.closing, code: 'SERVICE_UNAVAILABLE' },
} satisfies Record<string, { message: string; code: ErrorCode }>;

/** The errors that end the results, though nothing is wrong with the operation. */
export function errorsOf(ending: Ending): readonly GraphQLFormattedError[] {
  const { message, code } = endings[ending];
  return [{ message, extensions: { code } }];
}

/** The error of an operation whose client gets these errors instead of a result. Yoga hands on an error of this name as it is. */
export class OperationFailed extends Error {
  override name = 'AbortError';
  readonly errors: readonly GraphQLFormattedError[];

  constructor(errors: readonly GraphQLFormattedError[]) {
    super(errors[0]?.message);
    this.errors = errors;
  }
}
