/** Runs requests by Yoga, which knows all of GraphQL over HTTP, as work for the pipeline. */

import { STATUS_CODES } from 'node:http';
import { OperationTypeNode } from 'graphql';
import { problemOf, type Viewer } from '../auth/viewer.ts';
import type { ErrorCode } from '../errors.ts';
import { errorResponse, httpErrors } from '../http/errorResponse.ts';
import type { Exchange } from '../http/exchange.ts';
import { type HttpResponse, revalidated, type StreamedResponse } from '../http/response.ts';
import type { OtherWork, Query } from '../http/task.ts';
import { createStreams } from './streams.ts';
import type { createGraphqlYoga, YogaContext } from './yoga.ts';

/** What a response depends on, beside the body. */
export const vary = 'Authorization, Accept';

export interface YogaWork {
  /**
   * Any request.
   * @param accept the media type of its response, where that is not for the client to choose.
   */
  handle(exchange: Exchange, body: Buffer | undefined, viewer: Viewer | null, accept?: string): OtherWork;
  /** A query in the target of a GET, which clients may ask for conditionally. */
  read(exchange: Exchange, viewer: Viewer): Query;
  /** A response of this media type to an operation that the fast path could not finish. */
  finish(exchange: Exchange, body: Buffer, viewer: Viewer, type: string): Promise<HttpResponse>;
}

/** @param maxSubscriptions how many each user may have open. */
export function createYogaWork(
  yoga: ReturnType<typeof createGraphqlYoga>,
  maxSubscriptions: number,
): YogaWork {
  const ask = createYogaClient(yoga);
  const streams = createStreams(maxSubscriptions);

  async function respond(
    exchange: Exchange,
    body: Buffer | undefined,
    context: YogaContext,
    accept: string | undefined,
  ): Promise<HttpResponse | StreamedResponse> {
    const { viewer } = context;
    const gone = new AbortController();
    exchange.response.once('close', () => gone.abort());
    try {
      const reply = await ask(exchange, body, context, { signal: gone.signal, accept }).finally(() => {
        exchange.operation = context.outcome.label;
      });
      if (!viewer || !isStream(reply)) return await responseFrom(reply, context);
      return streams.open(viewer.id, reply) ?? tooManySubscriptions(maxSubscriptions, reply);
    } catch (error) {
      // The client has left, so nobody reads this response.
      if (gone.signal.aborted) return errorResponse('graphql', httpErrors.internal);
      throw error;
    }
  }

  return {
    handle(exchange, body, viewer, accept) {
      const context = newContext(exchange, viewer);
      return {
        kind: 'other',
        mayHaveWritten: () => context.outcome.type === OperationTypeNode.MUTATION,
        run: () => respond(exchange, body, context, accept),
      };
    },

    read: (exchange, viewer) => ({
      kind: 'query',
      async run() {
        const context = newContext(exchange, viewer);
        const reply = await ask(exchange, undefined, context);
        const { type, label, failed } = context.outcome;
        const response = { ...(await responseFrom(reply, context)), operation: label };
        const isCacheable = reply.status === 200 && type === OperationTypeNode.QUERY && !failed;
        return { response: isCacheable ? revalidated(response, vary) : response, isCacheable };
      },
    }),

    async finish(exchange, body, viewer, type) {
      const context = newContext(exchange, viewer);
      return responseFrom(await ask(exchange, body, context, { accept: type }), context);
    },
  };
}

/** Hands requests to Yoga, which speaks the Fetch API. */
function createYogaClient(yoga: ReturnType<typeof createGraphqlYoga>) {
  return async (
    { request, target }: Exchange,
    body: Buffer | undefined,
    context: YogaContext,
    { signal, accept }: { signal?: AbortSignal; accept?: string | undefined } = {},
  ): Promise<Response> => {
    const { method, headers } = request;
    const given = Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)]],
    );
    const init = {
      method: method === 'HEAD' ? 'GET' : (method ?? 'GET'),
      headers: {
        ...Object.fromEntries(given),
        ...(accept !== undefined && { accept }),
        // That of a part of a batch is not that of the request.
        ...(body && { 'content-length': String(body.length) }),
      },
      ...(body && { body: new Uint8Array(body) }),
      ...(signal && { signal }),
    };
    return yoga.fetch(new URL(target, 'http://gateway'), init, context);
  };
}

function newContext({ request, report }: Exchange, viewer: Viewer | null): YogaContext {
  const tokenProblem = problemOf(request.headers.authorization);
  return { viewer, tokenProblem, outcome: { failed: false }, report };
}

/** Headers about how a body is sent in pieces, which do not hold for one that was read whole. */
const transferHeaders = new Set(['content-length', 'transfer-encoding', 'connection']);

export const notAcceptable =
  'A query or mutation gives application/graphql-response+json or application/json, a subscription text/event-stream: ' +
  'Accept has to name it';

/** Yoga's response, read whole. Some of its errors have a status and no body. */
async function responseFrom(reply: Response, { outcome }: YogaContext): Promise<HttpResponse> {
  const { status } = reply;
  const body = Buffer.from(await reply.arrayBuffer());
  const headers = Object.fromEntries(
    [...reply.headers].filter(([name]) => !transferHeaders.has(name.toLowerCase())),
  );
  if (body.length === 0 && status >= 400) {
    const { accept: _, ...others } = headers;
    return status === 406
      ? requestFailure(status, notAcceptable, others)
      : requestFailure(status, STATUS_CODES[status] ?? '', headers);
  }
  return {
    status,
    headers: { 'Cache-Control': 'no-store', ...headers, 'Content-Length': body.length },
    body,
    errorCode: outcome.errorCode,
  };
}

/** A response to what is not a request for an operation. */
export function requestFailure(
  status: number,
  message: string,
  headers?: Record<string, string>,
  code: ErrorCode = 'BAD_USER_INPUT',
): HttpResponse {
  return errorResponse('graphql', { status, code, message }, headers);
}

function isStream({ headers }: Response): boolean {
  return /^(text\/event-stream|multipart\/mixed)/.test(headers.get('content-type') ?? '');
}

function tooManySubscriptions(most: number, unread: Response): HttpResponse {
  // A stream that nobody reads may never end by itself.
  unread.body?.cancel().catch(() => {});
  const message = `There are ${most} subscriptions open; at most ${most} are allowed`;
  return requestFailure(429, message, { 'Retry-After': '1' }, 'TOO_MANY_REQUESTS');
}
