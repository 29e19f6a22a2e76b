/** Makes tasks of requests for operations: how each is executed, and of which media type its response is. */

import { setImmediate } from 'node:timers/promises';
import { type ExecutionResult, OperationTypeNode } from 'graphql';
import type { Viewer } from '../auth/viewer.ts';
import type { Config } from '../config/config.ts';
import type { Exchange } from '../http/exchange.ts';
import { isRead } from '../http/requestChecks.ts';
import { type HttpResponse, revalidated, type StreamedResponse } from '../http/response.ts';
import type { OtherWork, Query, Task, Work } from '../http/task.ts';
import type { Context } from '../schema/context.ts';
import type { Execution, Operation, Rejected } from './execution.ts';
import { createKeyedQueue } from './keyedQueue.ts';
import type { PersistedOperations } from './persisted.ts';
import type { PersistedFile } from './persistedFile.ts';
import { type OperationRequest, readBodyRequest, readTarget } from './request.ts';
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
import { createYogaResponses, malformed } from './yoga.ts';

export interface TasksOptions extends Omit<SubscribeOptions, 'maxSubscriptions'> {
  readonly config: Pick<Config, 'MAX_SUBSCRIPTIONS'>;
  readonly execution: Execution;
  readonly persisted: Pick<PersistedOperations, 'registers'>;
  readonly persistedFile: Pick<PersistedFile, 'generation'>;
  createContext(viewer: Viewer): Context;
}

/** A request for an operation, as it came. */
interface Received {
  readonly exchange: Exchange;
  readonly viewer: Viewer | null;
  /** The media type of the response. */
  readonly type: ResultType;
  /** Undefined for a GET. */
  readonly body: Buffer | undefined;
}

/** A request whose operation is prepared; undefined for one that is not well-formed. */
export interface PreparedRequest {
  readonly request: OperationRequest | undefined;
  readonly operation: Operation | Rejected | undefined;
}

/** The first two give a 406 to a client that accepts no media type which the response could have. */
export interface Tasks {
  /** The task of the operation in the target of a GET. */
  ofTarget(exchange: Exchange, viewer: Viewer | null): HttpResponse | Task;
  /** The task of the operation in a body. */
  ofBody(exchange: Exchange, body: Buffer, viewer: Viewer | null): HttpResponse | Task;
  /** The task of a request with a body that was prepared before. */
  ofPrepared(received: Received, prepared: PreparedRequest): Task;
}

export function createTasks(options: TasksOptions): Tasks {
  const { execution, persistedFile } = options;
  const workOf = createWork(options);
  const inTurn = createKeyedQueue<'anonymous'>(() => setImmediate());

  function prepare({ exchange, viewer }: Received, request: OperationRequest | undefined): PreparedRequest {
    const { authorization } = exchange.request.headers;
    const client = { viewer, authorization, mayWrite: !isRead(exchange) };
    return { request, operation: request && execution.prepare(request, client) };
  }

  function taskOf(received: Received, cacheKey: string, read: () => OperationRequest | undefined): Task {
    const prepareWork = () => workOf(received, prepare(received, read()));
    if (received.viewer)
      return { cacheKey: isWholeType(received.type) ? cacheKey : undefined, prepare: prepareWork };
    // Requests of anonymous clients run one after the other, and all other work goes before the next.
    const run = () => inTurn('anonymous', async () => runAnonymous(prepareWork()));
    return { cacheKey: undefined, prepare: () => ({ kind: 'other', mayHaveWritten: () => false, run }) };
  }

  const keyOfBody = ({ type }: Received, body: Buffer) =>
    // Latin-1 maps each byte to a character of its own, and is the fastest way to a string that stands for the bytes.
    `POST ${persistedFile.generation} ${type} ${body.toString('latin1')}`;

  return {
    ofTarget(exchange, viewer) {
      const type = typeFor(exchange);
      if (type === undefined) return requestFailure(406, notAcceptable);
      const { target } = exchange;
      const key = `GET ${persistedFile.generation} ${type} ${target}`;
      return taskOf({ exchange, viewer, type, body: undefined }, key, () => readTarget(target));
    },

    ofBody(exchange, body, viewer) {
      const type = typeFor(exchange);
      if (type === undefined) return requestFailure(406, notAcceptable);
      const received = { exchange, viewer, type, body };
      return taskOf(received, keyOfBody(received, body), () => readBodyRequest(body));
    },

    ofPrepared: (received, prepared) => ({
      cacheKey: received.body && keyOfBody(received, received.body),
      prepare: () => workOf(received, prepared),
    }),
  };
}

/** The media type of the response. Within a WebSocket or an event stream each result is JSON. */
const typeFor = ({ transport, request }: Exchange): ResultType | undefined =>
  transport === undefined ? resultTypeFor(request.headers.accept) : graphqlType;

async function runAnonymous({ run }: Work): Promise<HttpResponse | StreamedResponse> {
  const done = await run();
  return 'isCacheable' in done ? done.response : done;
}

/** A function that decides how a request is run. */
function createWork({
  config: { MAX_SUBSCRIPTIONS },
  persisted,
  createContext,
  ...others
}: TasksOptions): (received: Received, prepared: PreparedRequest) => Work {
  const subscribe = createSubscribe({ ...others, maxSubscriptions: MAX_SUBSCRIPTIONS });
  const respondByYoga = createYogaResponses();

  return (received, { request, operation }) => {
    const { exchange, viewer, type } = received;
    if (!request || !operation) return other(() => respondByYoga({ ...received, execute: malformed }));
    const execute = async () =>
      'errors' in operation ? operation : operation.execute(viewer ? createContext(viewer) : undefined);
    const respond = async () =>
      isWholeType(type)
        ? responseOf(await execute(), type, exchange.report)
        : respondByYoga({ ...received, execute });
    if ('errors' in operation) return other(respond);
    exchange.operation = operation.label;
    if (operation.type === OperationTypeNode.SUBSCRIPTION && viewer)
      return other(() => subscribe(exchange, viewer, { request, operation }));
    if (operation.type === OperationTypeNode.MUTATION || !isWholeType(type))
      return other(respond, operation.type === OperationTypeNode.MUTATION);
    return queryOf(received, {
      execute,
      // Equal requests may share the response, so it is made for the media type, not for this client's `Accept` header.
      respond: (result) => ({ ...responseOf(result, type, exchange.report), operation: operation.label }),
      isCacheable: !persisted.registers(request),
    });
  };
}

interface ExecutedQuery {
  execute(): Promise<ExecutionResult>;
  respond(result: ExecutionResult): HttpResponse;
  /** Whether its response may be cached, as far as that depends on the request. */
  readonly isCacheable: boolean;
}

const queryOf = ({ body }: Received, { execute, respond, ...query }: ExecutedQuery): Query => ({
  kind: 'query',
  async run() {
    const result = await execute();
    const response = respond(result);
    const isCacheable = query.isCacheable && !result.errors;
    // A GET may be conditional (`If-None-Match`).
    return { response: isCacheable && !body ? revalidated(response, vary) : response, isCacheable };
  },
});

const other = (run: OtherWork['run'], writes = false): OtherWork => ({
  kind: 'other',
  run,
  mayHaveWritten: () => writes,
});
