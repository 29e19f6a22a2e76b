/** Makes tasks of requests for operations: how each is executed, and of which media type its response is. */

import { setImmediate } from 'node:timers/promises';
import { type ExecutionResult, OperationTypeNode } from 'graphql';
import type { Viewer } from '../auth/viewer.ts';
import type { Config } from '../config/config.ts';
import type { Exchange } from '../http/exchange.ts';
import { parseJson } from '../http/json.ts';
import { isRead } from '../http/requestChecks.ts';
import { type HttpResponse, revalidated } from '../http/response.ts';
import type { OtherWork, Query, Task, Work } from '../http/task.ts';
import type { Context } from '../schema/context.ts';
import type { Rejected } from './documents.ts';
import type { Execution, Operation } from './execution.ts';
import { createKeyedQueue } from './keyedQueue.ts';
import type { PersistedOperations } from './persisted.ts';
import { exactText, type ReadRequest, readRequest, readTarget } from './request.ts';
import { requestFailure } from './requestFailure.ts';
import {
  graphqlType,
  isWholeType,
  notAcceptable,
  type ResultType,
  responseOf,
  resultTypeFor,
  vary,
} from './result.ts';
import { createSubscribe, type SubscribeOptions } from './subscribe.ts';

export interface TasksOptions extends Omit<SubscribeOptions, 'maxSubscriptions'> {
  readonly config: Pick<Config, 'MAX_SUBSCRIPTIONS'>;
  readonly execution: Execution;
  readonly persisted: PersistedOperations;
  createContext(viewer: Viewer): Context;
}

/** The parameters of a request as they came: in the target of a GET, in a body, or parsed by a transport such as a WebSocket. */
export type Given = { readonly target: string } | { readonly body: Buffer } | { readonly content: unknown };

/** Who asks, and by which exchange. */
interface Received {
  readonly exchange: Exchange;
  readonly viewer: Viewer | null;
  /** The media type of the response. */
  readonly type: ResultType;
}

export interface Tasks {
  /** The task of a request, or a 406 for a client that accepts no media type which the response could have. */
  of(exchange: Exchange, viewer: Viewer | null, given: Given): HttpResponse | Task;
  prepare(exchange: Exchange, viewer: Viewer | null, request: ReadRequest): Operation | Rejected;
  /** The task of a request that was prepared before. */
  ofPrepared(received: Received, content: unknown, operation: Operation | Rejected): Task;
}

export function createTasks(options: TasksOptions): Tasks {
  const { execution, persisted } = options;
  const workOf = createWork(options);
  const inTurn = createKeyedQueue<'anonymous'>(() => setImmediate());

  /** What equal requests of a viewer have in common; undefined for those whose response is never cached. */
  function cacheKeyOf(type: ResultType, given: Given): string | undefined {
    if (!isWholeType(type)) return undefined;
    if ('target' in given) return `GET ${persisted.generation} ${type} ${given.target}`;
    const text = 'body' in given ? undefined : exactText(given.content);
    const body = 'body' in given ? given.body : text && Buffer.from(text);
    // Latin-1 maps each byte to a character of its own, and is the fastest way to a string that stands for the bytes.
    return body && `POST ${persisted.generation} ${type} ${body.toString('latin1')}`;
  }

  const prepare: Tasks['prepare'] = (exchange, viewer, request) => {
    const { authorization } = exchange.request.headers;
    return execution.prepare(request, { viewer, authorization, mayWrite: !isRead(exchange) });
  };

  return {
    prepare,

    of(exchange, viewer, given) {
      const { transport, request } = exchange;
      // Within a WebSocket each result is JSON.
      const type = transport === undefined ? resultTypeFor(request.headers.accept) : graphqlType;
      if (type === undefined) return requestFailure(406, notAcceptable);
      const prepareWork = () =>
        workOf({ exchange, viewer, type }, prepare(exchange, viewer, readGiven(given)));
      if (viewer) return { cacheKey: cacheKeyOf(type, given), prepare: prepareWork };
      // Requests of anonymous clients run one after the other, and all other work goes before the next.
      const run = () =>
        inTurn('anonymous', async () => {
          const done = await prepareWork().run();
          return 'isCacheable' in done ? done.response : done;
        });
      return { cacheKey: undefined, prepare: () => other(run) };
    },

    ofPrepared: (received, content, operation) => ({
      cacheKey: cacheKeyOf(received.type, { content }),
      prepare: () => workOf(received, operation),
    }),
  };
}

function readGiven(given: Given): ReadRequest {
  if ('target' in given) return readTarget(given.target);
  return readRequest('body' in given ? parseJson(given.body.toString()) : given.content);
}

/** A function that decides how a request is run. */
function createWork({
  config: { MAX_SUBSCRIPTIONS },
  persisted,
  createContext,
  ...others
}: TasksOptions): (received: Received, operation: Operation | Rejected) => Work {
  const subscribe = createSubscribe({ ...others, maxSubscriptions: MAX_SUBSCRIPTIONS });

  return ({ exchange, viewer, type }, operation) => {
    const respond = (result: ExecutionResult) => responseOf(result, type, exchange.report);
    if ('errors' in operation) return other(async () => respond(operation));
    const { label } = operation;
    exchange.operation = label;
    if (operation.type === OperationTypeNode.SUBSCRIPTION && viewer)
      return other(() => subscribe(exchange, viewer, operation));
    const execute = async () => operation.execute(viewer ? createContext(viewer) : undefined);
    const isMutation = operation.type === OperationTypeNode.MUTATION;
    if (isMutation || !isWholeType(type)) return other(async () => respond(await execute()), isMutation);
    const mayCache = !persisted.registers(operation.request);
    const query: Query = {
      kind: 'query',
      async run() {
        const result = await execute();
        // Equal requests may share the response, so it is made for the media type, not for this client's `Accept` header.
        const response = { ...respond(result), operation: label };
        const isCacheable = mayCache && !result.errors;
        // A GET may be conditional (`If-None-Match`).
        return {
          response: isCacheable && isRead(exchange) ? revalidated(response, vary) : response,
          isCacheable,
        };
      },
    };
    return query;
  };
}

const other = (run: OtherWork['run'], writes = false): OtherWork => ({
  kind: 'other',
  run,
  mayHaveWritten: () => writes,
});
