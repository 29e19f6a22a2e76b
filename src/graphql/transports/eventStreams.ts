/**
 * Event streams of many operations: the single connection mode of the GraphQL over SSE protocol (PROTOCOL.md of graphql-sse).
 * A PUT reserves a stream, a GET opens it, each POST adds an operation, whose results the stream carries, and a DELETE ends
 * one.
 */

import { randomBytes } from 'node:crypto';
import type { Viewer } from '../../auth/viewer.ts';
import { type Exchange, isRead } from '../../http/exchange.ts';
import { emptyResponse, type HttpResponse, type StreamedResponse } from '../../http/response.ts';
import type { Task } from '../../http/task.ts';
import type { PerUser } from '../perUser.ts';
import { requestFailure } from '../requestFailure.ts';
import { createEventStream, type EventStream } from './eventStream.ts';
import { type Operations, tooManyConnections } from './operations.ts';

export interface EventStreamsOptions {
  readonly operations: Pick<Operations, 'begin' | 'watch'>;
  /** How many streams each user may have. */
  readonly places: PerUser;
  /** Whether all requests of a client reach this process. */
  readonly isOnlyProcess: boolean;
  /** How long, in milliseconds, a reserved stream may stay unopened. */
  readonly longestUnopened?: number;
  readonly heartbeat?: number;
}

export interface EventStreams {
  /** What a request about a stream gets, or is to do; undefined for one that is about none. */
  take(exchange: Exchange, viewer: Viewer): HttpResponse | Task | undefined;
  /** The stream that a POST adds its operation to, or why it cannot; undefined for a POST of its own. */
  streamFor(exchange: Exchange, viewer: Viewer, body: Buffer): OperationPlace | HttpResponse | undefined;
}

/** Where the results of an operation go. */
export interface OperationPlace {
  /** Gives the results to the stream. @returns the response to the request that brought the operation. */
  deliver(response: HttpResponse | StreamedResponse): HttpResponse;
}

const tokenHeader = 'x-graphql-event-stream-token';

const notFound =
  'There is no event stream with this token: it has ended, or was reserved in another process. Reserve one with PUT; ' +
  'where several processes or gateways serve, use a WebSocket, or a stream for each operation';

const severalProcesses =
  'Event streams of many operations need one process: with WORKERS, use a WebSocket, or a stream for each operation';

export function createEventStreams(options: EventStreamsOptions): EventStreams {
  const { operations, places, isOnlyProcess, longestUnopened = 30_000, heartbeat = 12_000 } = options;
  const streams = new Map<string, EventStream>();

  /** The stream that a request names; null for one that is not there or not the viewer's. */
  function find({ request, target }: Exchange, viewer: Viewer): EventStream | null | undefined {
    const header = request.headers[tokenHeader];
    const token = header ?? new URLSearchParams(target.split(/\?(.*)/s)[1]).get('token');
    if (token === null) return undefined;
    const found = streams.get(String(token));
    return found?.belongsTo(viewer) ? found : null;
  }

  function reserve(exchange: Exchange, viewer: Viewer): HttpResponse {
    if (!isOnlyProcess) return requestFailure(501, severalProcesses);
    if (!places.take(viewer.id)) {
      return requestFailure(429, tooManyConnections(places), { 'Retry-After': '1' }, 'TOO_MANY_REQUESTS');
    }
    const token = randomBytes(32).toString('base64url');
    const stream = createEventStream({
      exchange,
      viewer,
      operations,
      heartbeat,
      longestUnopened,
      onEnd() {
        streams.delete(token);
        places.give(viewer.id);
      },
    });
    streams.set(token, stream);
    // The protocol has the token as the whole body, without the end of a line.
    const body = Buffer.from(token);
    const headers = { 'Content-Type': 'text/plain; charset=utf-8', 'Content-Length': body.length };
    return { status: 201, headers: { ...headers, 'Cache-Control': 'no-store' }, body };
  }

  function end(exchange: Exchange, stream: EventStream): HttpResponse {
    const id = new URLSearchParams(exchange.target.split(/\?(.*)/s)[1]).get('operationId');
    if (id === null || id === '')
      return requestFailure(400, 'operationId is missing in the query of the URL');
    stream.complete(id);
    return emptyResponse(200);
  }

  return {
    take(exchange, viewer) {
      const { method } = exchange.request;
      if (method === 'PUT') return reserve(exchange, viewer);
      const stream = method === 'DELETE' || isRead(exchange) ? find(exchange, viewer) : undefined;
      if (stream === undefined) return undefined;
      if (stream === null) return requestFailure(404, notFound);
      if (method === 'DELETE') return end(exchange, stream);
      if (stream.isOpen) return requestFailure(409, 'The event stream is open already');
      exchange.operation = 'event stream';
      const run = async () => stream.open();
      return { cacheKey: undefined, prepare: () => ({ kind: 'other', mayHaveWritten: () => false, run }) };
    },

    streamFor(exchange, viewer, body) {
      const stream = find(exchange, viewer);
      if (stream === undefined) return undefined;
      if (stream === null) return requestFailure(404, notFound);
      const id = operationIdIn(body);
      if (id === undefined)
        return requestFailure(400, 'extensions.operationId is missing: a text that is not empty');
      if (stream.has(id)) return requestFailure(409, `There is an operation ${JSON.stringify(id)} already`);
      return (
        stream.add(id, exchange) ?? requestFailure(429, tooMany, { 'Retry-After': '1' }, 'TOO_MANY_REQUESTS')
      );
    },
  };
}

const tooMany = 'The event stream has too many operations whose results were not read';

const longestId = 256;

/** What the client calls an operation. What is wrong with the rest of the body is said by whoever runs it. */
function operationIdIn(body: Buffer): string | undefined {
  try {
    const id: unknown = JSON.parse(body.toString())?.extensions?.operationId;
    return typeof id === 'string' && id !== '' && id.length <= longestId ? id : undefined;
  } catch {
    return undefined;
  }
}
