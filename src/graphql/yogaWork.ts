/** Has Yoga run requests, as work for the pipeline. */

import { STATUS_CODES } from 'node:http';
import { OperationTypeNode } from 'graphql';
import { problemOf, type Viewer } from '../auth/viewer.ts';
import { errorResponse, httpErrors } from '../http/errorResponse.ts';
import type { Exchange } from '../http/exchange.ts';
import { type HttpResponse, revalidated, type StreamedResponse } from '../http/response.ts';
import type { OtherWork, Query } from '../http/task.ts';
import { notAcceptable, type ResultType } from './mediaTypes.ts';
import type { LiveResult } from './readers.ts';
import { requestFailure, tooManyFailure } from './requestFailure.ts';
import { framingFor, plain, streamOf } from './transports/framing.ts';
import { createUserQuota } from './userQuota.ts';
import type { createGraphqlYoga, YogaContext } from './yoga.ts';

/** The request headers on which a response depends. */
export const vary = 'Authorization, Accept';

export interface YogaWork {
  /** Runs any request. The type is the media type of the response, unless that has the results of a subscription. */
  handle(exchange: Exchange, body: Buffer | undefined, viewer: Viewer | null, type: ResultType): OtherWork;
  /** Runs a query in the target of a GET, which may be conditional (`If-None-Match`). */
  read(exchange: Exchange, viewer: Viewer, type: ResultType): Query;
  /** Runs again a query for which the fast path cannot make the response. */
  finish(exchange: Exchange, body: Buffer, viewer: Viewer, type: ResultType): Promise<HttpResponse>;
}

export interface YogaWorkOptions {
  /** How many subscriptions each user may have open. Each may run again at every change of the user's data. */
  readonly maxSubscriptions: number;
  /** Whether the viewer's token is still valid. */
  isValid(viewer: Viewer): Promise<boolean>;
  /** Aborted when the gateway closes. */
  readonly closing: AbortSignal;
  /** How often, in milliseconds, a stream without results sends a heartbeat. */
  readonly heartbeat?: number;
}

export function createYogaWork(
  yoga: ReturnType<typeof createGraphqlYoga>,
  options: YogaWorkOptions,
): YogaWork {
  const ask = createYogaClient(yoga);
  const subscribed = createSubscribed(options);

  async function respond(
    exchange: Exchange,
    body: Buffer | undefined,
    context: YogaContext,
    type: ResultType,
  ): Promise<HttpResponse | StreamedResponse> {
    const { viewer, executed } = context;
    const gone = new AbortController();
    if (exchange.isOver) gone.abort();
    else exchange.response.once('close', () => gone.abort());
    try {
      const reply = await ask(exchange, body, context, type, gone.signal).finally(() => {
        exchange.operation = executed.label;
      });
      return viewer && executed.results
        ? subscribed(exchange, executed.results, context, viewer)
        : await responseFrom(reply, context);
    } catch (error) {
      // The client has left, so nobody reads this response.
      if (gone.signal.aborted) return errorResponse('graphql', httpErrors.internal);
      throw error;
    }
  }

  return {
    handle(exchange, body, viewer, type) {
      const context = newContext(exchange, viewer);
      return {
        kind: 'other',
        mayHaveWritten: () => context.executed.type === OperationTypeNode.MUTATION,
        run: () => respond(exchange, body, context, type),
      };
    },

    read: (exchange, viewer, type) => ({
      kind: 'query',
      async run() {
        const context = newContext(exchange, viewer);
        const reply = await ask(exchange, undefined, context, type);
        const { executed } = context;
        const response = { ...(await responseFrom(reply, context)), operation: executed.label };
        const isCacheable =
          reply.status === 200 && executed.type === OperationTypeNode.QUERY && !executed.failed;
        return { response: isCacheable ? revalidated(response, vary) : response, isCacheable };
      },
    }),

    async finish(exchange, body, viewer, type) {
      const context = newContext(exchange, viewer);
      return responseFrom(await ask(exchange, body, context, type), context);
    },
  };
}

/** A function that makes the responses of subscriptions. */
function createSubscribed({ maxSubscriptions, isValid, closing, heartbeat = 12_000 }: YogaWorkOptions) {
  const open = createUserQuota(maxSubscriptions);
  return async (
    { transport, request }: Exchange,
    results: AsyncIterable<LiveResult>,
    { report }: YogaContext,
    viewer: Viewer,
  ): Promise<HttpResponse | StreamedResponse> => {
    const framing = transport === undefined ? framingFor(request.headers.accept) : plain;
    if (!framing || !open.acquire(viewer.id)) {
      // Nobody will read the results, so they are ended here.
      await results[Symbol.asyncIterator]().return?.();
      return framing ? tooManySubscriptions(maxSubscriptions) : requestFailure(406, notAcceptable);
    }
    const ended = () => open.release(viewer.id);
    const reason = async () => ((await isValid(viewer)) ? undefined : 'revoked');
    const stream = streamOf(results, { framing, heartbeat, reason, report, closing });
    return { status: 200, headers: { Vary: vary, ...framing.headers }, stream, ended };
  };
}

/** A function that gives requests to Yoga, by the Fetch API. */
function createYogaClient(yoga: ReturnType<typeof createGraphqlYoga>) {
  return async (
    { request, target }: Exchange,
    body: Buffer | undefined,
    context: YogaContext,
    type: ResultType,
    signal?: AbortSignal,
  ): Promise<Response> => {
    const { method, headers } = request;
    const given = Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)]],
    );
    const init = {
      method: method === 'HEAD' ? 'GET' : (method ?? 'GET'),
      headers: { ...Object.fromEntries(given), accept: type },
      ...(body && { body: new Uint8Array(body) }),
      ...(signal && { signal }),
    };
    return yoga.fetch(new URL(target, 'http://gateway'), init, context);
  };
}

function newContext({ request, report }: Exchange, viewer: Viewer | null): YogaContext {
  const tokenProblem = problemOf(request.headers.authorization);
  return { viewer, tokenProblem, executed: { failed: false }, report };
}

/**
 * Headers about the transfer of a body, which do not hold once the body was read whole. Yoga gives its streams the content
 * coding `none`, which does not exist (RFC 9110, section 8.4.1).
 */
const transferHeaders = new Set(['content-length', 'transfer-encoding', 'connection', 'content-encoding']);

/** Yoga's response with its whole body. Some errors have no body, and get one here. */
async function responseFrom(reply: Response, { executed }: YogaContext): Promise<HttpResponse> {
  const { status } = reply;
  const body = Buffer.from(await reply.arrayBuffer());
  const headers = Object.fromEntries(
    [...reply.headers].filter(([name]) => !transferHeaders.has(name.toLowerCase())),
  );
  if (body.length === 0 && status >= 400) {
    return requestFailure(status, STATUS_CODES[status] ?? '', headers);
  }
  return {
    status,
    headers: { 'Cache-Control': 'no-store', ...headers, 'Content-Length': body.length },
    body,
    errorCode: executed.errorCode,
  };
}

function tooManySubscriptions(most: number): HttpResponse {
  const message = `There are ${most} subscriptions open; at most ${most} are allowed`;
  return tooManyFailure(message);
}
