/** Runs subscriptions. Equal ones of a viewer share a live query, of which each subscriber is a reader. */

import { hash, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Viewer } from '../auth/viewer.ts';
import type { Exchange } from '../http/exchange.ts';
import type { HttpResponse, StreamedResponse } from '../http/response.ts';
import type { ResponseCache } from '../http/responseCache.ts';
import type { Context } from '../schema/context.ts';
import type { WatchViewer } from '../schema/subscriptions.ts';
import type { Operation } from './execution.ts';
import { createKeyedQueue } from './keyedQueue.ts';
import { createLiveQuery, type LiveQuery } from './liveQuery.ts';
import { done, type LiveResult, type Reader } from './readers.ts';
import type { OperationRequest } from './request.ts';
import { requestFailure, tooManyFailure } from './requestFailure.ts';
import { notAcceptable, type Report, vary } from './result.ts';
import { framingFor, plain, streamOf } from './transports/framing.ts';
import { createUserQuota } from './userQuota.ts';

/** The longest pause between two live queries of a viewer, in milliseconds. */
const longestRest = 1_000;

/** How often, in milliseconds, a stream without results sends a heartbeat. */
const heartbeat = 12_000;

/** A subscription that a request asks for. */
export interface Subscription {
  readonly request: OperationRequest;
  readonly operation: Pick<Operation, 'text' | 'execute'>;
}

export interface LiveQueriesOptions {
  readonly watchViewer: WatchViewer;
  createContext(viewer: Viewer): Context;
  readonly versions: Pick<ResponseCache, 'versionOf' | 'settleVersion' | 'noteRead'>;
}

export interface SubscribeOptions {
  /** What the results are made by. Their context need not be that of requests. */
  readonly changes: LiveQueriesOptions;
  /** How many subscriptions each user may have open. Each may run again at every change of the user's data. */
  readonly maxSubscriptions: number;
  /** Whether the viewer's token is still valid. */
  isValid(viewer: Viewer): Promise<boolean>;
  /** Aborted when the gateway closes. */
  readonly closing: AbortSignal;
}

type Subscribe = (
  exchange: Exchange,
  viewer: Viewer,
  subscription: Subscription,
) => Promise<HttpResponse | StreamedResponse>;

/** A function that makes the responses of subscriptions. */
export function createSubscribe(options: SubscribeOptions): Subscribe {
  const { changes, maxSubscriptions, isValid, closing } = options;
  const follow = createLiveQueries(changes);
  const open = createUserQuota(maxSubscriptions);
  const tooMany = `There are ${maxSubscriptions} subscriptions open; at most ${maxSubscriptions} are allowed`;

  return async ({ transport, request, report }, viewer, subscription) => {
    const framing = transport === undefined ? framingFor(request.headers.accept) : plain;
    if (!framing) return requestFailure(406, notAcceptable);
    if (!open.acquire(viewer.id)) return tooManyFailure(tooMany);
    const ended = () => open.release(viewer.id);
    const reason = async () => ((await isValid(viewer)) ? undefined : 'revoked');
    const results = follow(viewer, report, subscription);
    const stream = streamOf(results, { framing, heartbeat, reason, report, closing });
    return { status: 200, headers: { Vary: vary, ...framing.headers }, stream, ended };
  };
}

/** The results of a subscription, as clients may see them, and none twice in a row. */
export type Follow = (
  viewer: Viewer,
  report: Report,
  subscription: Subscription,
) => AsyncIterableIterator<LiveResult>;

/**
 * The live queries of a viewer run one after the other, with a pause as long as each took: a user with many subscriptions
 * delays nobody else.
 */
export function createLiveQueries({ watchViewer, createContext, versions }: LiveQueriesOptions): Follow {
  const inTurn = createKeyedQueue<number>((took) => sleep(Math.min(took, longestRest)));
  const live = new Map<string, LiveQuery>();
  const nameOf = createNames();

  function find(viewer: Viewer, subscription: Subscription): LiveQuery {
    const key = `${nameOf(viewer)} ${digestOf(subscription)}`;
    const found = live.get(key);
    if (found) return found;
    const made = createLiveQuery({
      viewer,
      // A new context has new loaders, which have not cached the data of earlier runs.
      async execute() {
        const result = await subscription.operation.execute(createContext(viewer));
        versions.noteRead(viewer.id);
        return result;
      },
      watchViewer,
      inTurn,
      versionOf: versions.versionOf,
      onEnd() {
        if (live.get(key) === made) live.delete(key);
      },
    });
    live.set(key, made);
    return made;
  }

  return (viewer, report, subscription) =>
    readLater(async () => {
      // The last result of a shared live query may be older than what the viewer has seen in another response.
      await versions.settleVersion(viewer.id);
      return find(viewer, subscription).join(report);
    });
}

/**
 * Names viewers, so that those with the same token have the same name: a subscription ends with its token. A token of the
 * upstream has no id, but only one viewer.
 */
function createNames(): (viewer: Viewer) => string {
  const numbers = new WeakMap<Viewer, number>();
  let last = 0;
  return (viewer) => {
    if (viewer.tokenId !== undefined) return `${viewer.id} token ${viewer.tokenId}`;
    const number = numbers.get(viewer) ?? ++last;
    numbers.set(viewer, number);
    return `${viewer.id} viewer ${number}`;
  };
}

/**
 * What makes two operations the same: their text, the name of the one that is run, and the variables as they were
 * sent.
 */
function digestOf({ request: { operationName, variables }, operation: { text } }: Subscription): string {
  let isExact = true;
  const identity = JSON.stringify([text, operationName, variables], (_key, value) => {
    if (typeof value === 'number' && !Number.isFinite(value)) isExact = false;
    return value;
  });
  // JSON has no infinite number, as a variable may be that was sent as 1e999: with such a one, an operation is like
  // no other.
  return hash('sha256', isExact ? identity : identity + randomUUID(), 'base64url');
}

/** Joins when the first result is asked for, so that nothing is left behind if the subscriber never asks. */
function readLater(join: () => Promise<Reader>): AsyncIterableIterator<LiveResult> {
  let reader: Promise<Reader> | undefined;
  let hasLeft = false;
  return {
    async next() {
      if (hasLeft) return done;
      reader ??= join();
      return (await reader).next();
    },
    async return() {
      hasLeft = true;
      // A reader that could not join need not leave.
      const joined = await reader?.catch(() => undefined);
      joined?.leave();
      return done;
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
