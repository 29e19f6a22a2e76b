/** One event stream that carries the results of many operations, from its reservation to its end. */

import type { Viewer } from '../../auth/viewer.ts';
import { type Exchange, endExchange } from '../../http/exchange.ts';
import { emptyResponse, type HttpResponse, type StreamedResponse } from '../../http/response.ts';
import type { Task } from '../../http/task.ts';
import { tooManyFailure } from '../requestFailure.ts';
import { createEventQueue, type EventQueue } from './eventQueue.ts';
import { serverSentEvents } from './framing.ts';
import type { PipelineAccess } from './operations.ts';
import { type Reading, readResults } from './results.ts';

export interface EventStream {
  belongsTo(viewer: Viewer): boolean;
  readonly isOpen: boolean;
  /** Makes the response that carries the results. Must be called once at most. */
  open(): StreamedResponse;
  has(id: string): boolean;
  /** Adds an operation, or returns the response that says why there can be no more. */
  add(id: string, exchange: Exchange): Required<Pick<Task, 'deliver'>> | HttpResponse;
  /** Stops an operation, if there is one of that id: the client wants no more results of it. */
  complete(id: string): void;
  /** Stops all operations, and ends the stream. */
  end(): void;
}

export interface EventStreamOptions {
  readonly viewer: Viewer;
  readonly operations: Pick<PipelineAccess, 'begin' | 'watch'>;
  readonly heartbeat: number;
  readonly longestUnopened: number;
  onEnd(): void;
}

/** How many operations a stream may have whose results the client has not read to the end. */
const mostOperations = 1_000;

interface Operation {
  readonly id: string;
  readonly queue: EventQueue;
  isStopped: boolean;
  reading?: Reading;
}

export function createEventStream(options: EventStreamOptions): EventStream {
  const { viewer, operations: pipeline, longestUnopened, heartbeat } = options;
  const operations = new Map<string, Operation>();
  const queue = createEventQueue(heartbeat, end);
  let isOpen = false;
  let hasEnded = false;
  const unopened = setTimeout(end, longestUnopened).unref();
  const unwatch = pipeline.watch(viewer, end);

  function end(): void {
    if (hasEnded) return;
    hasEnded = true;
    clearTimeout(unopened);
    unwatch();
    for (const operation of operations.values()) stop(operation);
    queue.end();
    options.onEnd();
  }

  function stop(operation: Operation): void {
    operation.isStopped = true;
    remove(operation);
    operation.reading?.stop();
  }

  /** Frees the id for another operation. */
  function remove(operation: Operation): void {
    if (operations.get(operation.id) === operation) operations.delete(operation.id);
  }

  return {
    belongsTo: ({ id }) => id === viewer.id,
    get isOpen() {
      return isOpen;
    },
    open() {
      isOpen = true;
      clearTimeout(unopened);
      return { status: 200, headers: serverSentEvents.headers, stream: queue.body, ended: end };
    },
    has: (id) => operations.has(id),
    add(id, exchange) {
      if (operations.size >= mostOperations) return tooMany;
      if (queue.isFull()) return unread;
      const operation: Operation = { id, queue, isStopped: false };
      operations.set(id, operation);
      exchange.transport = 'event stream';
      const deliver = createDelivery(operation, exchange, { pipeline, remove, end });
      return { deliver };
    },
    complete(id) {
      const operation = operations.get(id);
      if (operation) stop(operation);
    },
    end,
  };
}

const tooMany = tooManyFailure(
  `The event stream has ${mostOperations} operations whose results were not read; at most ${mostOperations} are allowed`,
);

const unread = tooManyFailure(
  'The event stream has results that were not read; no operation is added before they are',
);

interface Surroundings {
  readonly pipeline: Pick<PipelineAccess, 'begin'>;
  remove(operation: Operation): void;
  /** Ends the stream. */
  end(): void;
}

/** Writes the results of an operation to the stream, and makes the response to the request that added the operation. */
function createDelivery(
  operation: Operation,
  exchange: Exchange,
  { pipeline, remove, end }: Surroundings,
): NonNullable<Task['deliver']> {
  const { id, queue } = operation;

  async function finish(...results: readonly Uint8Array[]): Promise<void> {
    for (const result of results) await queue.push(nextEvent(id, result));
    remove(operation);
    if (!operation.isStopped) await queue.push(completeEvent(id));
  }

  /** Writes the results of a subscription, after the request that added it has its response. */
  async function streamResults(response: StreamedResponse): Promise<void> {
    const { request } = exchange;
    const going = pipeline.begin(request, {
      id: `${exchange.id}.1`,
      transport: 'event stream',
      authorization: request.headers.authorization,
      body: Buffer.alloc(0),
    });
    going.operation = exchange.operation;
    operation.reading = readResults(response, (result) => queue.push(nextEvent(id, result)));
    if (operation.isStopped) operation.reading.stop();
    const ending = await operation.reading.ended;
    endExchange(going, 200);
    if (ending === 'complete') await finish();
    // The protocol has no message for a subscription that broke off: the client learns of it when the whole stream ends.
    else if (ending !== 'stopped') end();
  }

  return (response) => {
    if ('stream' in response) {
      void streamResults(response);
      return emptyResponse(202);
    }
    const { status, body, operation: label, errorCode } = response;
    if (status !== 200) {
      remove(operation);
      return response;
    }
    if (!operation.isStopped) void finish(body);
    return { ...emptyResponse(202), operation: label, errorCode };
  };
}

/** @param payload the JSON text of a result. */
const nextEvent = (id: string, payload: Uint8Array) =>
  `event: next\ndata: {"id":${JSON.stringify(id)},"payload":${Buffer.from(payload)}}\n\n`;

const completeEvent = (id: string) => `event: complete\ndata: {"id":${JSON.stringify(id)}}\n\n`;
