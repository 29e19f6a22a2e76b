/**
 * GraphQL over HTTP. A plain JSON post of an operation that has been seen before takes the fast path: out of the
 * response cache, or run compiled. Everything else, and everything that turns out to be wrong, is Yoga's.
 */

import { isUtf8 } from 'node:buffer';
import { type IncomingMessage, STATUS_CODES } from 'node:http';
import { type ExecutionResult, OperationTypeNode } from 'graphql';
import type { Viewer } from '../auth/viewer.ts';
import { type ErrorCode, errorForClient, messages } from '../errors.ts';
import { readBody } from '../http/body.ts';
import { errorResponse, httpErrors } from '../http/errorResponse.ts';
import { asksForPage, type Exchange, isRead } from '../http/exchange.ts';
import { type HttpResponse, jsonResponse, revalidated, type StreamedResponse } from '../http/response.ts';
import type { Computed, OtherWork, Query, Task, Work } from '../http/task.ts';
import type { DemoTokenFor } from '../pages/demoToken.ts';
import type { PreparedOperation } from '../schema/compile.ts';
import { createDocuments } from './documents.ts';
import { createExplorer } from './explorer.ts';
import { asksForQuery, type PlainRequest, readPlainRequest } from './operations.ts';
import { loadPersistedOperations } from './persisted.ts';
import { createStreams } from './streams.ts';
import { createGraphqlYoga, type YogaContext, type YogaOptions } from './yoga.ts';

/** What a response depends on, beside the body. */
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
  /** Gives the token that GraphiQL asks with. */
  demoTokenFor: DemoTokenFor;
}

export type GraphqlHandler = (exchange: Exchange, viewer: Viewer | null) => Promise<HttpResponse | Task>;

/** @throws {SetupError} when the persisted operations cannot be used. */
export function createGraphqlHandler(options: GraphqlOptions): GraphqlHandler {
  const { config, createContext } = options;
  const documents = createDocuments(config);
  const persisted = loadPersistedOperations(config, documents);
  const askYoga = createYogaClient(createGraphqlYoga({ ...options, documents, persisted }));
  const streams = createStreams(config.MAX_SUBSCRIPTIONS);
  const explorer = config.GRAPHIQL === 'on' ? createExplorer(options.demoTokenFor) : undefined;

  return async (exchange, viewer) => {
    if (explorer && asksForPage(exchange)) return explorer(exchange);
    if (isRead(exchange)) return taskOfRead(exchange, viewer);
    const body = await bodyOf(exchange.request, config.MAX_BODY_KB);
    return Buffer.isBuffer(body) ? taskOfPost(exchange, body, viewer) : body;
  };

  /** A query in the target of a GET, which clients may ask for conditionally. */
  function taskOfRead(exchange: Exchange, viewer: Viewer | null): Task {
    const { request, target } = exchange;
    return {
      cacheKey: viewer ? `GET ${request.headers.accept} ${target}` : undefined,
      prepare: () =>
        viewer && asksForQuery(target, documents, persisted)
          ? readThroughYoga(exchange, viewer)
          : throughYoga(exchange, undefined, viewer),
    };
  }

  function taskOfPost(exchange: Exchange, body: Buffer, viewer: Viewer | null): Task {
    const type = viewer ? fastPathType(exchange.request) : undefined;
    return {
      // Latin-1 maps each byte to a character of its own, and is the fastest way to a string that stands for the bytes.
      cacheKey: type === undefined ? undefined : `POST ${type} ${body.toString('latin1')}`,
      prepare() {
        const fast = viewer && type !== undefined ? fastPath(exchange, { body, type, viewer }) : undefined;
        return fast ?? throughYoga(exchange, body, viewer);
      },
    };
  }

  /** Undefined for a request that is not for the fast path. */
  function fastPath(exchange: Exchange, post: Post): Work | undefined {
    const plain = readPlainRequest(post.body, persisted);
    const operation = plain && documents.prepared(plain.text, plain.operationName, plain.variables);
    if (!operation) return undefined;
    exchange.operation = operation.label;
    return operation.type === OperationTypeNode.QUERY
      ? compiledQuery(exchange, post, plain, operation)
      : preparedMutation(exchange, post, plain, operation);
  }

  function compiledQuery(
    exchange: Exchange,
    { body, type, viewer }: Post,
    { variables }: PlainRequest,
    operation: PreparedOperation,
  ): Query {
    return {
      kind: 'query',
      async run() {
        const result = await operation.run(variables, createContext(viewer));
        if (isWhole(result)) {
          const response = { ...responseOf(exchange, result, type), operation: operation.label };
          return { response, isCacheable: !result.errors };
        }
        // Who shares this response has asked for the same type, if in other words.
        const reply = await askYoga(exchange, body, newContext(exchange, viewer), { accept: type });
        return { response: await responseFrom(reply), isCacheable: false };
      },
    };
  }

  function preparedMutation(
    exchange: Exchange,
    { body, type, viewer }: Post,
    { variables }: PlainRequest,
    operation: PreparedOperation,
  ): OtherWork {
    return {
      kind: 'other',
      mayHaveWritten: () => true,
      async run() {
        const result = await operation.run(variables, createContext(viewer));
        if (result.data !== undefined) return responseOf(exchange, result, type);
        // Without data nothing was executed, and Yoga says why.
        return throughYoga(exchange, body, viewer).run();
      },
    };
  }

  function readThroughYoga(exchange: Exchange, viewer: Viewer): Query {
    return {
      kind: 'query',
      async run(): Promise<Computed> {
        const context = newContext(exchange, viewer);
        const reply = await askYoga(exchange, undefined, context);
        const { outcome } = context;
        const response = { ...(await responseFrom(reply)), operation: outcome.label };
        const isCacheable =
          reply.status === 200 && outcome.type === OperationTypeNode.QUERY && !outcome.failed;
        return { response: isCacheable ? revalidated(response, vary) : response, isCacheable };
      },
    };
  }

  function throughYoga(exchange: Exchange, body: Buffer | undefined, viewer: Viewer | null): OtherWork {
    const context = newContext(exchange, viewer);
    return {
      kind: 'other',
      mayHaveWritten: () => context.outcome.type === OperationTypeNode.MUTATION,
      async run(): Promise<HttpResponse | StreamedResponse> {
        const gone = new AbortController();
        exchange.response.once('close', () => gone.abort());
        try {
          const reply = await askYoga(exchange, body, context, { signal: gone.signal }).finally(() => {
            exchange.operation = context.outcome.label;
          });
          if (!viewer || !isStream(reply)) return await responseFrom(reply);
          return streams.open(viewer.id, reply) ?? tooManySubscriptions(config.MAX_SUBSCRIPTIONS, reply);
        } catch (error) {
          // Nobody reads what comes of a request whose client has left.
          if (gone.signal.aborted) return errorResponse('graphql', httpErrors.internal);
          throw error;
        }
      },
    };
  }
}

/** A post that may take the fast path. */
interface Post {
  readonly body: Buffer;
  /** The media type of its response. */
  readonly type: string;
  readonly viewer: Viewer;
}

/** The body of a request that is no read, or the response to one that cannot be read. */
async function bodyOf(request: IncomingMessage, maxKilobytes: number): Promise<Buffer | HttpResponse> {
  if (request.method === 'POST' && !postType.test(request.headers['content-type'] ?? ''))
    return failure(415, 'A POST takes a body of the type application/json', { Connection: 'close' });
  const body = await readBody(request, maxKilobytes * 1024);
  if (!body) {
    const tooLarge = `The request body is larger than ${maxKilobytes} KiB, the most that is allowed`;
    return failure(413, tooLarge, { Connection: 'close' });
  }
  return isUtf8(body) ? body : failure(400, messages.bodyNotUtf8);
}

function responseOf(exchange: Exchange, { data, errors }: ExecutionResult, type: string): HttpResponse {
  const shown = errors?.map((error) => errorForClient(error, exchange.report));
  const headers = { 'Content-Type': `${type}; charset=utf-8`, 'Cache-Control': 'no-store', Vary: vary };
  return jsonResponse(200, JSON.stringify({ errors: shown, data }), headers);
}

/** Hands requests to Yoga, which speaks the Fetch API. */
function createYogaClient(yoga: ReturnType<typeof createGraphqlYoga>) {
  return async (
    { request, target }: Exchange,
    body: Buffer | undefined,
    context: YogaContext,
    { signal, accept }: { signal?: AbortSignal; accept?: string } = {},
  ): Promise<Response> => {
    const { method, headers } = request;
    const given = Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)]],
    );
    const init = {
      method: method === 'HEAD' ? 'GET' : (method ?? 'GET'),
      headers: { ...Object.fromEntries(given), ...(accept !== undefined && { accept }) },
      ...(body && { body: new Uint8Array(body) }),
      ...(signal && { signal }),
    };
    return yoga.fetch(new URL(target, 'http://gateway'), init, context);
  };
}

function newContext({ report }: Exchange, viewer: Viewer | null): YogaContext {
  return { viewer, outcome: { failed: false }, report };
}

/** Whether the result makes a 200. Where nothing was executed, or an error has a status, Yoga knows. */
function isWhole({ data, errors }: ExecutionResult): boolean {
  // Those of compiled code need not have extensions.
  return (
    data !== undefined && !errors?.some(({ extensions }: ExecutionError) => extensions?.http !== undefined)
  );
}

/** The media type that the fast path responds with, or undefined for a request that is not for it. */
function fastPathType({ method, headers }: IncomingMessage): string | undefined {
  if (method !== 'POST' || !postType.test(headers['content-type'] ?? '')) return undefined;
  const accept = headers.accept ?? '*/*';
  if (accept.includes(graphqlType)) return graphqlType;
  return accept.includes(jsonType) || accept.includes('*/*') ? jsonType : undefined;
}

/** Headers that say how a response comes in pieces, which does not hold for one that is whole. */
const ofPieces = new Set(['content-length', 'transfer-encoding', 'connection']);

/** Yoga's response, read whole. Some of its errors say no more than a status. */
async function responseFrom(reply: Response): Promise<HttpResponse> {
  const { status } = reply;
  const body = Buffer.from(await reply.arrayBuffer());
  const headers = Object.fromEntries(
    [...reply.headers].filter(([name]) => !ofPieces.has(name.toLowerCase())),
  );
  if (body.length === 0 && status >= 400) return failure(status, STATUS_CODES[status] ?? '', headers);
  return {
    status,
    headers: { 'Cache-Control': 'no-store', ...headers, 'Content-Length': body.length },
    body,
  };
}

/** A response to what is not a request for an operation. */
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

function tooManySubscriptions(most: number, unread: Response): HttpResponse {
  // The stream that nobody reads need not end.
  unread.body?.cancel().catch(() => {});
  const message = `There are ${most} subscriptions open; at most ${most} are allowed`;
  return failure(429, message, { 'Retry-After': '1' }, 'TOO_MANY_REQUESTS');
}
