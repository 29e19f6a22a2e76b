/** Runs subscriptions. Equal ones of a viewer share a live query, of which each subscriber is a reader. */

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

/** The longest pause between two live queries of a viewer, in milliseconds. */
const longestRest = 1_000;

/** The parts of the context that a subscription needs. */
export interface Subscriber {
  readonly viewer: Viewer;
  readonly report: Report;
}

/**
 * The results of a subscription, as clients may see them, and none twice in a row. Or the errors of a subscription that
 * cannot begin, as graphql-js makes them.
 * @param args the context is that of a `Subscriber`: without a viewer no document is a subscription.
 */
export type Subscribe = (args: ExecutionArgs) => Promise<AsyncIterableIterator<LiveResult> | ExecutionResult>;

export interface SubscribeOptions {
  readonly watchViewer: WatchViewer;
  createContext(viewer: Viewer): Context;
  readonly versions: Pick<ResponseCache, 'versionOf' | 'settleVersion' | 'noteRead'>;
}

/**
 * The live queries of a viewer run one after the other, with a pause as long as each took: a user with many subscriptions
 * delays nobody else.
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
      // A new context has new loaders, which have not cached the data of earlier runs.
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
        // The last result of a shared live query may be older than what the viewer has seen in another response.
        await versions.settleVersion(viewer.id);
        return find(args, viewer).join(report);
      });
    const results = await createSourceEventStream({ ...args, subscribeFieldResolver });
    // `createSourceEventStream` returns what the resolver returned.
    return isAsyncIterable(results) ? (results as AsyncIterableIterator<LiveResult>) : results;
  };
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
