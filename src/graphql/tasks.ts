/**
 * Decides how a request for an operation is run, by the fast path or by Yoga, and of which media type its response
 * is.
 */

import { setImmediate } from 'node:timers/promises';
import type { Viewer } from '../auth/viewer.ts';
import type { Exchange } from '../http/exchange.ts';
import type { HttpResponse } from '../http/response.ts';
import type { Task, Work } from '../http/task.ts';
import type { Documents } from './documents.ts';
import type { FastPath } from './fastPath.ts';
import { createKeyedQueue } from './keyedQueue.ts';
import { graphqlType, jsonType, notAcceptable, type ResultType, resultTypeFor } from './mediaTypes.ts';
import type { PersistedOperations } from './persisted.ts';
import { asksForCacheable } from './plainRequest.ts';
import { requestFailure } from './requestFailure.ts';
import type { YogaWork } from './yogaWork.ts';

export interface TasksOptions {
  readonly documents: Documents;
  readonly persisted: PersistedOperations;
  readonly fastPath: FastPath;
  readonly yogaWork: YogaWork;
}

/** Each gives a 406 to a client that accepts no media type which the response could have. */
export interface Tasks {
  /** The task of the operation in the target of a GET. */
  ofRead(exchange: Exchange, viewer: Viewer | null): HttpResponse | Task;
  /** The task of the operation in a body. */
  ofBody(exchange: Exchange, body: Buffer, viewer: Viewer | null): HttpResponse | Task;
  /** The same, where the client does not choose the media type. */
  ofTypedBody(exchange: Exchange, body: Buffer, viewer: Viewer | null, type: ResultType): Task;
}

export function createTasks({ documents, persisted, fastPath, yogaWork }: TasksOptions): Tasks {
  const anonymousWork = createAnonymousWork(yogaWork);

  function ofTypedBody(exchange: Exchange, body: Buffer, viewer: Viewer | null, type: ResultType): Task {
    if (!viewer) return { cacheKey: undefined, prepare: () => anonymousWork(exchange, body, type) };
    const isWhole = type === jsonType || type === graphqlType;
    return {
      // Latin-1 maps each byte to a character of its own, and is the fastest way to a string that stands for the bytes.
      cacheKey: isWhole ? `POST ${persisted.generation} ${type} ${body.toString('latin1')}` : undefined,
      prepare() {
        const fast = isWhole ? fastPath(exchange, { body, type, viewer }) : undefined;
        return fast ?? yogaWork.handle(exchange, body, viewer, type);
      },
    };
  }

  return {
    ofTypedBody,

    ofBody(exchange, body, viewer) {
      const type = typeFor(exchange);
      return type === undefined
        ? requestFailure(406, notAcceptable)
        : ofTypedBody(exchange, body, viewer, type);
    },

    ofRead(exchange, viewer) {
      const { target } = exchange;
      const type = typeFor(exchange);
      if (type === undefined) return requestFailure(406, notAcceptable);
      if (!viewer) return { cacheKey: undefined, prepare: () => anonymousWork(exchange, undefined, type) };
      return {
        cacheKey: `GET ${persisted.generation} ${type} ${target}`,
        prepare: () =>
          asksForCacheable(target, documents, persisted, viewer)
            ? yogaWork.read(exchange, viewer, type)
            : yogaWork.handle(exchange, undefined, viewer, type),
      };
    },
  };
}

/** The media type of the response. Within a WebSocket or an event stream each result is JSON. */
const typeFor = ({ transport, request }: Exchange): ResultType | undefined =>
  transport === undefined ? resultTypeFor(request.headers.accept) : graphqlType;

/** Runs requests of anonymous clients one after the other, and lets all other work go before the next. */
function createAnonymousWork(yogaWork: YogaWork) {
  const inTurn = createKeyedQueue<'anonymous'>(() => setImmediate());
  return (exchange: Exchange, body: Buffer | undefined, type: ResultType): Work => {
    const { run, ...work } = yogaWork.handle(exchange, body, null, type);
    return { ...work, run: () => inTurn('anonymous', run) };
  };
}
