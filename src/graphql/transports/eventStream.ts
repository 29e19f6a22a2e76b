/** One event stream of many operations, from its reservation on. */

import type { Viewer } from '../../auth/viewer.ts';
import { conclude, type Exchange } from '../../http/exchange.ts';
import { emptyResponse, type HttpResponse, type StreamedResponse } from '../../http/response.ts';
import type { OperationPlace } from './eventStreams.ts';
import { serverSentEvents } from './framing.ts';
import type { Operations } from './operations.ts';
import { type Reading, readResults } from './results.ts';

export interface EventStream {
  belongsTo(viewer: Viewer): boolean;
  readonly isOpen: boolean;
  /** The response that carries the results. There is one. */
  open(): StreamedResponse;
  has(id: string): boolean;
  /** A place for an operation; undefined when there are enough. */
  add(id: string, exchange: Exchange): OperationPlace | undefined;
  /** The client wants no more of an operation, if there is one. */
  complete(id: string): void;
}

export interface EventStreamOptions {
  /** The exchange that has reserved it. */
  readonly exchange: Exchange;
  readonly viewer: Viewer;
  readonly operations: Pick<Operations, 'begin' | 'watch'>;
  readonly heartbeat: number;
  readonly longestUnopened: number;
  onEnd(): void;
}

/** How many operations a stream may have whose last result was not read. */
const mostOperations = 1_000;

interface Operation {
  isStopped: boolean;
  reading?: Reading;
}

export function createEventStream(options: EventStreamOptions): EventStream {
  const { viewer, operations: pipeline, longestUnopened } = options;
  const operations = new Map<string, Operation>();
  const queue = createQueue(options.heartbeat, end);
  let isOpen = false;
  let hasEnded = false;
  const unopened = setTimeout(end, longestUnopened).unref();
  const unwatch = pipeline.watch(viewer, end);

  function end(): void {
    if (hasEnded) return;
    hasEnded = true;
    clearTimeout(unopened);
    unwatch();
    for (const [id, operation] of operations) stop(id, operation);
    queue.end();
    options.onEnd();
  }

  function remove(id: string, operation: Operation): void {
    if (operations.get(id) === operation) operations.delete(id);
  }

  function stop(id: string, operation: Operation): void {
    operation.isStopped = true;
    remove(id, operation);
    operation.reading?.stop();
  }

  /** The last events of an operation, after which its id may name another. */
  async function finish(id: string, operation: Operation, ...results: readonly Buffer[]): Promise<void> {
    for (const result of results) await queue.push(eventOf('next', id, result));
    remove(id, operation);
    if (!operation.isStopped) await queue.push(eventOf('complete', id));
  }

  /** Goes on with a subscription after the request that brought it has its response. */
  async function follow(id: string, operation: Operation, exchange: Exchange, response: StreamedResponse) {
    const { authorization } = exchange.request.headers;
    const body = Buffer.alloc(0);
    const going = pipeline.begin(exchange.request, {
      id: `${exchange.id}.1`,
      transport: 'event stream',
      authorization,
      body,
    });
    going.operation = exchange.operation;
    operation.reading = readResults(response, (result) =>
      queue.push(eventOf('next', id, Buffer.from(result))),
    );
    if (operation.isStopped) operation.reading.stop();
    const ending = await operation.reading.ended;
    conclude(going, 200);
    if (ending === 'complete') await finish(id, operation);
    // Only a stream that ends tells a client that there should have been more.
    else if (ending !== 'stopped') end();
  }

  return {
    belongsTo: ({ id }) => id === viewer.id && !hasEnded,
    get isOpen() {
      return isOpen;
    },
    open() {
      isOpen = true;
      clearTimeout(unopened);
      return { status: 200, headers: serverSentEvents.headers, stream: queue.stream, ended: end };
    },
    has: (id) => operations.has(id),
    add(id, exchange) {
      if (operations.size >= mostOperations) return undefined;
      const operation: Operation = { isStopped: false };
      operations.set(id, operation);
      exchange.transport = 'event stream';
      return {
        deliver(response) {
          if ('stream' in response) void follow(id, operation, exchange, response);
          else if (response.status !== 200) {
            remove(id, operation);
            return response;
          } else if (!operation.isStopped) void finish(id, operation, response.body);
          return accepted(response);
        },
      };
    },
    complete(id) {
      const operation = operations.get(id);
      if (operation) stop(id, operation);
    },
  };
}

function accepted(response: HttpResponse | StreamedResponse): HttpResponse {
  const shown = 'stream' in response ? {} : { operation: response.operation, errorCode: response.errorCode };
  return { ...emptyResponse(202), ...shown };
}

/** @param payload the JSON text of a result. */
function eventOf(event: 'next' | 'complete', id: string, payload?: Buffer): string {
  const name = JSON.stringify(id);
  const data = payload ? `{"id":${name},"payload":${payload}}` : `{"id":${name}}`;
  return `event: ${event}\ndata: ${data}\n\n`;
}

/** What is written by many and read by one, who may come later. */
function createQueue(heartbeat: number, onLeft: () => void) {
  const encoder = new TextEncoder();
  const waiting: { text: string; taken: () => void }[] = [];
  let wake = () => {};
  let beat: NodeJS.Timeout | undefined;
  let hasEnded = false;

  function end(): void {
    hasEnded = true;
    clearInterval(beat);
    for (const { taken } of waiting.splice(0)) taken();
    wake();
  }

  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        beat ??= setInterval(() => {
          if (waiting.length === 0) void push(serverSentEvents.heartbeat);
        }, heartbeat);
        while (waiting.length === 0 && !hasEnded)
          await new Promise<void>((settle) => {
            wake = settle;
          });
        const next = waiting.shift();
        if (!next) return controller.close();
        controller.enqueue(encoder.encode(next.text));
        next.taken();
      },
      cancel: onLeft,
    },
    // Nothing is taken before it is asked for: the stream begins with its reader.
    { highWaterMark: 0 },
  );

  /** Settles when the text was taken, or never will be. */
  function push(text: string): Promise<void> {
    return new Promise((taken) => {
      if (hasEnded) return taken();
      waiting.push({ text, taken });
      wake();
    });
  }

  void push(serverSentEvents.opening);
  return { stream, push, end };
}
