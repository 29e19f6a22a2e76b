/**
 * Event streams of many operations: the single connection mode of the GraphQL over SSE protocol (PROTOCOL.md of graphql-sse).
 * A PUT reserves a stream, a GET opens it, each POST adds an operation, whose results the stream carries, and a DELETE ends
 * one.
 */

import { randomBytes } from 'node:crypto';
import type { Viewer } from '../../auth/viewer.ts';
import type { Exchange, Transport } from '../../http/exchange.ts';
import { isRecord, parseJson } from '../../http/json.ts';
import { isRead } from '../../http/requestChecks.ts';
import { emptyResponse, type HttpResponse, isResponse } from '../../http/response.ts';
import type { Task } from '../../http/task.ts';
import { requestFailure, tooManyFailure, unauthorizedFailure } from '../requestFailure.ts';
import type { UserQuota } from '../userQuota.ts';
import { createEventStream, type EventStream } from './eventStream.ts';
import { framingFor, serverSentEvents } from './framing.ts';
import { type PipelineAccess, tooManyConnections } from './operations.ts';

export interface EventStreamsOptions {
  readonly operations: Pick<PipelineAccess, 'begin' | 'watch'>;
  /** How many streams each user may have. */
  readonly connectionQuota: UserQuota;
  /** Whether all requests of a client reach this process. */
  readonly isOnlyProcess: boolean;
  /** Aborted when the gateway closes, which no stream outlives. */
  readonly closing: AbortSignal;
}

export interface EventStreams {
  /**
   * Handles a request that reserves, opens or ends a stream, or completes an operation; returns undefined for any
   * other.
   */
  handle(exchange: Exchange, viewer: Viewer | null): HttpResponse | Task | undefined;
  /** The task of a POST. If the request names a stream, its results go to that stream. */
  attach(
    exchange: Exchange,
    viewer: Viewer | null,
    body: Buffer,
    createTask: () => HttpResponse | Task,
  ): HttpResponse | Task;
}

const tokenHeader = 'x-graphql-event-stream-token';

const notFound = requestFailure(
  404,
  'There is no event stream with this token: it has ended, or was reserved in another process. Reserve one by PUT; where several gateways serve, use a WebSocket, or a stream for each operation',
);

const severalProcesses = requestFailure(
  501,
  'An event stream of many operations needs a gateway of one process, and WORKERS asks for more: use a WebSocket, or a stream for each operation',
);

const notAcceptable = requestFailure(406, 'Accept must name text/event-stream to open an event stream');

/** How long, in milliseconds, a reserved stream may stay unopened. */
const longestUnopened = 30_000;

/** How often, in milliseconds, a stream without events says that it is there. */
const heartbeat = 12_000;

/** How many characters the id of an operation may have. Every event of the operation repeats it. */
const longestId = 256;

export function createEventStreams(options: EventStreamsOptions): EventStreams {
  const streams = new Map<string, EventStream>();
  options.closing.addEventListener('abort', () => {
    for (const stream of streams.values()) stream.end();
  });

  /**
   * The stream that a request names: null if there is none, or it is another user's; undefined if the request names
   * none.
   */
  function find(exchange: Exchange, viewer: Viewer | null): EventStream | null | undefined {
    const token = exchange.request.headers[tokenHeader] ?? parameterOf(exchange, 'token');
    if (token === null) return undefined;
    const found = streams.get(String(token));
    return viewer && found?.belongsTo(viewer) ? found : null;
  }

  return {
    handle(exchange, viewer) {
      const { method } = exchange.request;
      if (method !== 'PUT' && method !== 'DELETE' && !isRead(exchange)) return undefined;
      const stream = method === 'PUT' ? null : find(exchange, viewer);
      if (stream === undefined) return undefined;
      if (!viewer) return unauthorizedFailure(exchange.request);
      if (method === 'PUT') return reserve(exchange, viewer, { ...options, streams });
      if (!stream) return notFound;
      return method === 'DELETE' ? complete(exchange, stream) : open(exchange, stream);
    },

    attach(exchange, viewer, body, createTask) {
      const stream = find(exchange, viewer);
      // An anonymous client has no stream. Its request is run, or rejected, like one that names none.
      if (stream === undefined || !viewer) return createTask();
      if (!stream) return notFound;
      const id = operationIdIn(body);
      if (id === undefined)
        return requestFailure(400, `extensions.operationId must be a text of 1 to ${longestId} characters`);
      if (stream.has(id)) return requestFailure(409, `There is an operation ${JSON.stringify(id)} already`);
      const added = stream.add(id, exchange);
      if (isResponse(added)) return added;
      const task = createTask();
      // The id in the body makes each request different, so caching is of no use.
      return isResponse(task) ? task : { ...task, cacheKey: undefined, ...added };
    },
  };
}

function reserve(
  exchange: Exchange,
  viewer: Viewer,
  {
    streams,
    operations,
    connectionQuota,
    isOnlyProcess,
    closing,
  }: EventStreamsOptions & { readonly streams: Map<string, EventStream> },
): HttpResponse {
  if (!isOnlyProcess) return severalProcesses;
  if (!connectionQuota.acquire(viewer.id)) return tooManyFailure(tooManyConnections(connectionQuota));
  const token = randomBytes(32).toString('base64url');
  const onEnd = () => {
    streams.delete(token);
    connectionQuota.release(viewer.id);
  };
  const stream = createEventStream({ viewer, operations, heartbeat, longestUnopened, onEnd });
  streams.set(token, stream);
  if (closing.aborted) stream.end();
  exchange.operation = 'reservation';
  // The protocol has the token as the whole body, without the end of a line.
  const body = Buffer.from(token);
  const headers = { 'Content-Type': 'text/plain; charset=utf-8', 'Content-Length': body.length };
  return { status: 201, headers: { ...headers, 'Cache-Control': 'no-store' }, body };
}

function open(exchange: Exchange, stream: EventStream): HttpResponse | Task {
  if (framingFor(exchange.request.headers.accept) !== serverSentEvents) return notAcceptable;
  if (stream.isOpen) return requestFailure(409, 'The event stream is open already');
  exchange.operation = 'event stream' satisfies Transport;
  // A HEAD does not open the stream: a GET still has to read it.
  if (exchange.request.method === 'HEAD')
    return { status: 200, headers: serverSentEvents.headers, body: Buffer.alloc(0) };
  exchange.transport = 'event stream';
  const run = async () => stream.open();
  return { cacheKey: undefined, prepare: () => ({ kind: 'other', mayHaveWritten: () => false, run }) };
}

function complete(exchange: Exchange, stream: EventStream): HttpResponse {
  const id = parameterOf(exchange, 'operationId');
  if (id === null || id === '') return requestFailure(400, 'The target must have an operationId');
  stream.complete(id);
  return emptyResponse(200);
}

const parameterOf = ({ target, path }: Exchange, name: string) =>
  target === path ? null : new URLSearchParams(target.slice(path.length)).get(name);

/** The client's id of an operation. The rest of the body is checked when the operation runs. */
function operationIdIn(body: Buffer): string | undefined {
  const request = parseJson(body.toString());
  if (!isRecord(request) || !isRecord(request.extensions)) return undefined;
  const { operationId: id } = request.extensions;
  return typeof id === 'string' && id !== '' && id.length <= longestId ? id : undefined;
}
