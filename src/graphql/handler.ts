/**
 * The GraphQL door. A plain JSON post of an operation that has been seen before takes the express lane: answered
 * from memory, or run compiled. Everything else, and everything that turns out to be wrong, is Yoga's.
 */

import { isUtf8 } from 'node:buffer';
import { once, setMaxListeners } from 'node:events';
import { type IncomingMessage, STATUS_CODES } from 'node:http';
import { type ExecutionResult, OperationTypeNode } from 'graphql';
import { type HttpResponse, jsonResponse, revalidated, send } from '../http/response.ts';
import type { Viewer } from '../auth/viewer.ts';
import { readBody } from '../http/body.ts';
import { type ErrorCode, type ExecutionError, errorForClient, messages } from '../errors.ts';
import { asksForPage, type Exchange } from '../http/exchange.ts';
import type { Gate } from '../http/loadShedding.ts';
import type { Computed, ResponseCache } from '../http/responseCache.ts';
import type { DemoTokenFor } from '../pages/demoToken.ts';
import { httpErrors, errorResponse } from '../http/errorResponse.ts';
import { createDocuments } from './documents.ts';
import { createExplorer } from './explorer.ts';
import { asksForQuery, readPlainRequest } from './operations.ts';
import { loadPersistedOperations } from './persisted.ts';
import { createGraphqlYoga, type YogaContext, type YogaOptions } from './yoga.ts';

/** How long, in milliseconds, the reader of a stream may leave it unread before it is dropped. */
const slowestReader = 30_000;

/** What an answer depends on, beside the body. */
const vary = 'Authorization, Accept';

/**
 * What a POST may carry (GraphQL over HTTP, section 5.1), and no type that a form of a foreign page can send: with
 * this one a browser asks first whether it may (CORS, preflight).
 */
const postType = /^application\/json *(;|$)/i;

const jsonType = 'application/json';
/** GraphQL over HTTP, section 4.2. */
const graphqlType = 'application/graphql-response+json';

export interface GraphqlOptions extends Omit<YogaOptions, 'documents' | 'persisted'> {
  responseCache: ResponseCache;
  gate: Gate;
  /** Gives the token that GraphiQL asks with. */
  demoTokenFor: DemoTokenFor;
  /** Aborted when the gateway closes: streams end then, which would never end by themselves. */
  closing: AbortSignal;
}

export type GraphqlHandler = (exchange: Exchange, viewer: Viewer | null) => Promise<void>;

/** @throws {SetupError} when the persisted operations cannot be used. */
export function createGraphqlHandler(options: GraphqlOptions): GraphqlHandler {
  const { config, createContext, demoTokenFor, responseCache, gate, closing } = options;
  const documents = createDocuments(config);
  const persisted = loadPersistedOperations(config, documents);
  const yoga = createGraphqlYoga({ ...options, documents, persisted });
  const explorer = config.GRAPHIQL === 'on' ? createExplorer(demoTokenFor) : undefined;
  /** How many each user has open. */
  const subscriptions = new Map<number, number>();
  // Every stream waits for it: many of them are no leak.
  setMaxListeners(0, closing);

  return async (exchange, viewer) => {
    if (explorer && asksForPage(exchange)) return send(exchange, await explorer(exchange));
    const { request, target } = exchange;
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    if (request.method === 'POST' && !postType.test(request.headers['content-type'] ?? '')) {
      return send(
        exchange,
        failure(415, 'A POST takes a body of the type application/json', { Connection: 'close' }),
      );
    }
    const body = isRead ? undefined : await readBody(request, config.MAX_BODY_KB * 1024);
    if (!isRead && !body) {
      const tooLarge = `The request body is larger than ${config.MAX_BODY_KB} KiB, the most that is allowed`;
      return send(exchange, failure(413, tooLarge, { Connection: 'close' }));
    }
    if (body && !isUtf8(body)) return send(exchange, failure(400, messages.bodyNotUtf8));
    if (viewer && body) {
      const reply = await fastPath(exchange, body, viewer);
      if (reply) return send(exchange, reply);
    }
    if (viewer && isRead) {
      const key = `GET ${request.headers.accept} ${target}`;
      const found = responseCache.find(viewer.id, key);
      if (found) return send(exchange, found);
      if (!gate(exchange)) return send(exchange, tooBusy);
      if (asksForQuery(target, documents, persisted)) {
        const reply = await responseCache.compute(viewer.id, key, () => read(exchange, viewer));
        return send(exchange, reply);
      }
    }
    if (!gate(exchange)) return send(exchange, tooBusy);
    await general(exchange, body, viewer);
  };

  /** The express lane. Undefined for a request that is not for it. */
  async function fastPath(exchange: Exchange, body: Buffer, viewer: Viewer): Promise<HttpResponse | undefined> {
    const type = fastPathType(exchange.request);
    if (!type) return undefined;
    // Latin-1 maps each byte to a character of its own, and is the fastest way to a string that stands for the bytes.
    const key = `POST ${type} ${body.toString('latin1')}`;
    const found = responseCache.find(viewer.id, key);
    if (found) return found;
    if (!gate(exchange)) return tooBusy;

    const plain = readPlainRequest(body, persisted);
    const operation = plain && documents.prepared(plain.text, plain.operationName, plain.variables);
    if (!operation) return undefined;
    exchange.operation = operation.label;
    if (operation.type === OperationTypeNode.QUERY) {
      return responseCache.compute(viewer.id, key, async () => {
        const result = await operation.run(plain.variables, createContext(viewer));
        if (isWhole(result)) {
          const reply = { ...responseOf(exchange, result, type), operation: operation.label };
          return { reply, keep: !result.errors };
        }
        return {
          // Whoever shares this answer has asked for the same type, if in other words.
          reply: await responseFrom(await ask(exchange, body, newContext(exchange, viewer), { accept: type })),
          keep: false,
        };
      });
    }
    try {
      const result = await operation.run(plain.variables, createContext(viewer));
      // Without data nothing was executed, and Yoga says why.
      return result.data === undefined ? undefined : responseOf(exchange, result, type);
    } finally {
      // Also after a failure: a commit whose acknowledgement was lost has changed something all the same.
      responseCache.changed(viewer.id);
    }
  }

  function responseOf(exchange: Exchange, { data, errors }: ExecutionResult, type: string): HttpResponse {
    const shown = errors?.map((error) => errorForClient(error, exchange.report));
    const headers = { 'Content-Type': `${type}; charset=utf-8`, 'Cache-Control': 'no-store', Vary: vary };
    return jsonResponse(200, JSON.stringify({ errors: shown, data }), headers);
  }

  /** A query in the target of a GET, which clients may ask for conditionally. */
  async function read(exchange: Exchange, viewer: Viewer): Promise<Computed> {
    const context = newContext(exchange, viewer);
    const response = await ask(exchange, undefined, context);
    const reply = { ...(await responseFrom(response)), operation: context.outcome.label };
    const keep =
      response.status === 200 && context.outcome.type === OperationTypeNode.QUERY && !context.outcome.failed;
    return { reply: keep ? revalidated(reply, vary) : reply, keep };
  }

  async function general(exchange: Exchange, body: Buffer | undefined, viewer: Viewer | null): Promise<void> {
    const context = newContext(exchange, viewer);
    const gone = new AbortController();
    exchange.response.once('close', () => gone.abort());
    try {
      const reply = await ask(exchange, body, context, { signal: gone.signal }).finally(() => {
        exchange.operation = context.outcome.label;
        if (viewer && context.outcome.type === OperationTypeNode.MUTATION) responseCache.changed(viewer.id);
      });
      if (viewer && isStream(reply)) await subscribe(exchange, reply, viewer);
      else send(exchange, await responseFrom(reply));
    } catch (error) {
      if (!gone.signal.aborted) throw error;
    }
  }

  /** Every change of a user's data is work for each of their subscriptions, so there is a limit to their number. */
  async function subscribe(exchange: Exchange, reply: Response, viewer: Viewer): Promise<void> {
    const { MAX_SUBSCRIPTIONS } = config;
    const open = subscriptions.get(viewer.id) ?? 0;
    if (open >= MAX_SUBSCRIPTIONS) {
      // The stream that nobody reads need not end.
      reply.body?.cancel().catch(() => {});
      const message = `There are ${open} subscriptions open; at most ${MAX_SUBSCRIPTIONS} are allowed`;
      return send(exchange, failure(429, message, { 'Retry-After': '1' }, 'TOO_MANY_REQUESTS'));
    }
    subscriptions.set(viewer.id, open + 1);
    try {
      await stream(exchange, reply, closing);
    } finally {
      const left = (subscriptions.get(viewer.id) ?? 1) - 1;
      if (left > 0) subscriptions.set(viewer.id, left);
      else subscriptions.delete(viewer.id);
    }
  }

  async function ask(
    { request, target }: Exchange,
    body: Buffer | undefined,
    context: YogaContext,
    { signal, accept }: { signal?: AbortSignal; accept?: string } = {},
  ): Promise<Response> {
    const { method, headers } = request;
    const given = Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)]],
    );
    const init = {
      // A HEAD is a GET whose answer leaves out the body, which Node takes care of.
      method: method === 'HEAD' ? 'GET' : (method ?? 'GET'),
      headers: { ...Object.fromEntries(given), ...(accept !== undefined && { accept }) },
      ...(body && { body: new Uint8Array(body) }),
      ...(signal && { signal }),
    };
    return yoga.fetch(new URL(target, 'http://gateway'), init, context);
  }
}

function newContext({ report }: Exchange, viewer: Viewer | null): YogaContext {
  return { viewer, outcome: { failed: false }, report };
}

/** Whether the result is answered with a 200. Where nothing was executed, or an error has a status, Yoga knows. */
function isWhole({ data, errors }: ExecutionResult): boolean {
  // Those of compiled code need not have extensions.
  return (
    data !== undefined && !errors?.some(({ extensions }: ExecutionError) => extensions?.http !== undefined)
  );
}

/** The media type that the express lane answers with, or undefined for a request that is not for it. */
function fastPathType({ method, headers }: IncomingMessage): string | undefined {
  if (method !== 'POST' || !postType.test(headers['content-type'] ?? '')) return undefined;
  const accept = headers.accept ?? '*/*';
  if (accept.includes(graphqlType)) return graphqlType;
  return accept.includes(jsonType) || accept.includes('*/*') ? jsonType : undefined;
}

const tooBusy = errorResponse('graphql', httpErrors.tooBusy);

/** Headers that say how an answer comes in pieces, which does not hold for one that is whole. */
const ofPieces = new Set(['content-length', 'transfer-encoding', 'connection']);

/** Yoga's answer. Some of its refusals say no more than a status. */
async function responseFrom(response: Response): Promise<HttpResponse> {
  const { status } = response;
  const body = Buffer.from(await response.arrayBuffer());
  const headers = Object.fromEntries(
    [...response.headers].filter(([name]) => !ofPieces.has(name.toLowerCase())),
  );
  if (body.length === 0 && status >= 400) return failure(status, STATUS_CODES[status] ?? '', headers);
  return {
    status,
    headers: { 'Cache-Control': 'no-store', ...headers, 'Content-Length': body.length },
    body,
  };
}

/** An answer to what is not a request for an operation. */
function failure(
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

/**
 * Sends the answer piece by piece, no faster than the client reads it, until it ends, the client leaves or stops
 * reading, or the gateway closes.
 */
async function stream(
  { request, response, headers }: Exchange,
  reply: Response,
  closing: AbortSignal,
): Promise<void> {
  if (response.headersSent) return reply.body?.cancel();
  // Yoga says `none` of its streams, which is no encoding that there is (RFC 9110, section 8.4.1).
  const given = [...reply.headers].filter(([name]) => name.toLowerCase() !== 'content-encoding');
  response.writeHead(reply.status, { ...Object.fromEntries(given), ...headers });
  // What a HEAD asks for are the headers (RFC 9110, section 9.3.2).
  if (request.method === 'HEAD') {
    reply.body?.cancel().catch(() => {});
    return void response.end();
  }
  const reader = reply.body?.getReader();
  const leave = () => {
    // The pending read of a stream that is cancelled need not end, so nothing waits for it.
    reader?.cancel().catch(() => {});
    response.end();
  };
  response.once('close', leave);
  closing.addEventListener('abort', leave);
  try {
    for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) {
      if (response.writableEnded) return;
      if (!response.write(piece.value))
        await once(response, 'drain', { signal: AbortSignal.timeout(slowestReader) });
    }
    response.end();
  } catch {
    response.destroy();
  } finally {
    closing.removeEventListener('abort', leave);
  }
}
