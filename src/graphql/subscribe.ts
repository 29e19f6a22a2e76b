/** Subscriptions: equal ones of a viewer share one live query, and each reader gets its results. */

import { hash, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  createSourceEventStream,
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  execute,
  print,
} from 'graphql';
import { isAsyncIterable } from 'graphql-yoga';
import type { Viewer } from '../auth/viewer.ts';
import type { ResponseCache } from '../http/responseCache.ts';
import type { Context } from '../schema/context.ts';
import type { WatchViewer } from '../schema/subscriptions.ts';
import type { Report } from './clientErrors.ts';
import { createKeyedQueue } from './keyedQueue.ts';
import { createLiveQuery, type LiveQuery } from './liveQuery.ts';
import { done, type LiveResult, type Reader } from './readers.ts';

/** In milliseconds. */
const longestRest = 1_000;

/** What the context of a subscription has to have. */
export interface Subscriber {
  readonly viewer: Viewer;
  readonly report: Report;
}

/**
 * The results of a subscription, or why there are none. Results are as clients may see them, and none comes twice in a row.
 * Errors of a subscription that does not begin are as graphql-js makes them.
 * @param args the context is that of a `Subscriber`: without a viewer no document is a subscription.
 */
export type Subscribe = (args: ExecutionArgs) => Promise<AsyncIterableIterator<LiveResult> | ExecutionResult>;

export interface SubscribeOptions {
  readonly watchViewer: WatchViewer;
  createContext(viewer: Viewer): Context;
  readonly versions: Pick<ResponseCache, 'versionOf' | 'settleVersion' | 'noteRead'>;
}

/**
 * The live queries of a viewer take turns, and rest as long as they took: whoever has many open waits for themselves.
 */
export function createSubscribe({ watchViewer, createContext, versions }: SubscribeOptions): Subscribe {
  const inTurn = createKeyedQueue<number>((took) => sleep(Math.min(took, longestRest)));
  const live = new Map<string, LiveQuery>();
  const nameOf = createNames();

  function find(args: ExecutionArgs, viewer: Viewer): LiveQuery {
    const key = `${nameOf(viewer)} ${digestOf(args)}`;
    const found = live.get(key);
    if (found) return found;
    const { schema, document, operationName, variableValues } = args;
    const operation = { schema, document, operationName, variableValues };
    const made = createLiveQuery({
      viewer,
      // With loaders of its own, which know nothing of how things were.
      async execute() {
        const result = await execute({ ...operation, contextValue: createContext(viewer) });
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

  return async (args) => {
    const { viewer, report } = args.contextValue as Subscriber;
    const subscribeFieldResolver = () =>
      readLater(async () => {
        // What others have had last may be older than what the viewer was shown elsewhere.
        await versions.settleVersion(viewer.id);
        return find(args, viewer).join(report);
      });
    const results = await createSourceEventStream({ ...args, subscribeFieldResolver });
    // It gives what the resolver does.
    return isAsyncIterable(results) ? (results as AsyncIterableIterator<LiveResult>) : results;
  };
}

/**
 * What makes two viewers the same: the token that they came with, since each stream ends with its own. Tokens of the
 * upstream have no id; there is one viewer for each.
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
function digestOf({ document, operationName, variableValues }: ExecutionArgs): string {
  let isExact = true;
  const operation = JSON.stringify([textOf(document), operationName, variableValues], (_key, value) => {
    if (typeof value === 'number' && !Number.isFinite(value)) isExact = false;
    return value;
  });
  // JSON has no infinite number, as a variable may be that was sent as 1e999: with such a one, an operation is like
  // no other.
  return hash('sha256', isExact ? operation : operation + randomUUID(), 'base64url');
}

const textOf = (document: DocumentNode): string => document.loc?.source.body ?? print(document);

/** Joins when the first result is asked for: a subscriber who leaves before that need not say so. */
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
      // Who could not join need not leave.
      const joined = await reader?.catch(() => undefined);
      joined?.leave();
      return done;
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
