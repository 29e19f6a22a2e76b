/** Runs requests by Yoga, which knows all of GraphQL over HTTP, as work for the pipeline. */

import { STATUS_CODES } from 'node:http';
import { OperationTypeNode } from 'graphql';
import { problemOf, type Viewer } from '../auth/viewer.ts';
import { errorResponse, httpErrors } from '../http/errorResponse.ts';
import type { Exchange } from '../http/exchange.ts';
import { type HttpResponse, revalidated, type StreamedResponse } from '../http/response.ts';
import type { OtherWork, Query } from '../http/task.ts';
import { createPerUser } from './perUser.ts';
import { requestFailure } from './requestFailure.ts';
import { framingFor, plain, streamingTypes, streamOf } from './transports/framing.ts';
import type { createGraphqlYoga, YogaContext } from './yoga.ts';

/** What a response depends on, beside the body. */
export const vary = 'Authorization, Accept';

/** GraphQL over HTTP, section 4.2. */
export const graphqlType = 'application/graphql-response+json';

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

export interface YogaWorkOptions {
  /** How many subscriptions each user may have open: every change of a user's data is work for each of them. */
  readonly maxSubscriptions: number;
  /** Whether the token that a viewer came with still stands for them. */
  isValid(viewer: Viewer): Promise<boolean>;
  /** How often, in milliseconds, a stream without results says that it is there. */
  readonly heartbeat?: number;
}

export function createYogaWork(
  yoga: ReturnType<typeof createGraphqlYoga>,
  options: YogaWorkOptions,
): YogaWork {
  const ask = createYogaClient(yoga);
  const streamed = createStreaming(options);

  async function respond(
    exchange: Exchange,
    body: Buffer | undefined,
    context: YogaContext,
    accept: string | undefined,
  ): Promise<HttpResponse | StreamedResponse> {
    const { viewer } = context;
    const gone = new AbortController();
    if (exchange.isOver) gone.abort();
    else exchange.response.once('close', () => gone.abort());
    try {
      const reply = await ask(exchange, body, context, { signal: gone.signal, accept }).finally(() => {
        exchange.operation = context.outcome.label;
      });
      return viewer && (context.outcome.results || isStream(reply))
        ? streamed(exchange, reply, context, viewer)
        : await responseFrom(reply, context);
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

/** Makes responses of what has more than one result, or is asked for as if it had. */
function createStreaming({ maxSubscriptions, isValid, heartbeat = 12_000 }: YogaWorkOptions) {
  const open = createPerUser(maxSubscriptions);
  return (
    { transport, request }: Exchange,
    reply: Response,
    { outcome: { results }, report }: YogaContext,
    viewer: Viewer,
  ): HttpResponse | StreamedResponse => {
    const framing = transport === undefined ? framingFor(request.headers.accept) : plain;
    // What nobody reads may never end by itself.
    const leave = () => void (results ? results[Symbol.asyncIterator]().return?.() : reply.body?.cancel());
    if (results && !framing) {
      leave();
      return requestFailure(406, notAcceptable);
    }
    if (!open.take(viewer.id)) {
      leave();
      return tooManySubscriptions(maxSubscriptions);
    }
    const ended = () => open.give(viewer.id);
    if (!results || !framing) return { ...streamOfReply(reply), ended };
    const reason = async () => ((await isValid(viewer)) ? undefined : 'revoked');
    const stream = streamOf(results, { framing, heartbeat, reason, report });
    return { status: 200, headers: { Vary: vary, ...framing.headers }, stream, ended };
  };
}

/** Hands requests to Yoga, which speaks the Fetch API. */
function createYogaClient(yoga: ReturnType<typeof createGraphqlYoga>) {
  return async (
    { request, target, transport }: Exchange,
    body: Buffer | undefined,
    context: YogaContext,
    { signal, accept }: { signal?: AbortSignal; accept?: string | undefined } = {},
  ): Promise<Response> => {
    const { method, headers } = request;
    const given = Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)]],
    );
    // What carries the results takes them as JSON, whatever the client accepts of its request.
    const type = transport === undefined ? accept : graphqlType;
    const init = {
      method: method === 'HEAD' ? 'GET' : (method ?? 'GET'),
      headers: {
        ...Object.fromEntries(given),
        ...(type !== undefined && { accept: type }),
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

export const notAcceptable = `A query or mutation gives application/graphql-response+json or application/json, a subscription ${streamingTypes}: Accept has to name it`;

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

function isStream({ headers }: Response): boolean {
  return /^(text\/event-stream|multipart\/mixed)/.test(headers.get('content-type') ?? '');
}

function tooManySubscriptions(most: number): HttpResponse {
  const message = `There are ${most} subscriptions open; at most ${most} are allowed`;
  return requestFailure(429, message, { 'Retry-After': '1' }, 'TOO_MANY_REQUESTS');
}

/** A stream of Yoga's: of a query or mutation, for a client that asks for one. */
function streamOfReply({ status, headers, body }: Response) {
  // Yoga says `none` of its streams, which is no encoding that there is (RFC 9110, section 8.4.1).
  const shown = [...headers].filter(([name]) => name.toLowerCase() !== 'content-encoding');
  return { status, headers: Object.fromEntries(shown), stream: body };
}
