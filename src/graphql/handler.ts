/**
 * GraphQL over HTTP: handles requests to `/graphql`. Promises that `execution.ts` executes every well-formed request, by POST or
 * GET, and that an error says why any other cannot be executed. Browsers get GraphiQL. A batch has several operations in one request, as
 * Apollo's BatchHttpLink sends them. Each runs as if it came alone. GraphQL Yoga sends event streams (`yoga.ts`).
 *
 * May be replaced by GraphQL Yoga, with `execution.ts` as its executor, but without cached responses, without batches, and at
 * half the speed.
 */

import { buffer } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
import { type ExecutionResult, type GraphQLSchema, OperationTypeNode } from 'graphql';
import type { Logger } from 'pino';
import type { HasEnded, Viewer } from '../auth/viewer.ts';
import type { Config } from '../config/config.ts';
import type { Exchange } from '../http/exchange.ts';
import { isRecord, parseJson } from '../http/json.ts';
import { acceptedOf, asksForPage, isRead, readText } from '../http/request.ts';
import { type HttpResponse, revalidated } from '../http/response.ts';
import type { Batch, BatchPart, OtherWork, Task, Work } from '../http/task.ts';
import type { DemoTokenFor } from '../pages/demoToken.ts';
import { headerFor, type PageSettings } from '../pages/links.ts';
import { bundledPage, ownFiles, type PageHandler, pageByToken, pageResponse } from '../pages/page.ts';
import type { Context } from '../schema/context.ts';
import {
  createDocuments,
  createExecution,
  type Execution,
  type Operation,
  type Rejected,
  tooComplex,
} from './execution.ts';
import { createKeyedQueue } from './keyedQueue.ts';
import {
  exactText,
  graphqlType,
  hasTooManyValues,
  isWholeType,
  jsonType,
  notAcceptable,
  type ReadRequest,
  type ResultType,
  readRequest,
  readTarget,
  requestFailure,
  responseOf,
  resultTypeFor,
  tooManyValues,
  unauthorizedFailure,
  vary,
} from './overHttp.ts';
import {
  createPersistedOperations,
  openPersistedFile,
  type PersistedFile,
  type PersistedOperations,
} from './persisted.ts';
import { createSubscribe, type SubscribeOptions } from './subscribe.ts';
import { contentTypeOf, type StreamType, streamOf } from './transports/streams.ts';
import { eventStream, loadYoga } from './yoga.ts';

/**
 * The media type of a POST (GraphQL over HTTP, section 5.1). A form on another site cannot send it: a browser sends a CORS
 * preflight before such a request.
 */
const postType = /^application\/json *(;|$)/i;

const otherType = 'A POST takes a body of the type application/json';

const brace = '{'.charCodeAt(0);

interface GraphqlOptions extends SubscribeOptions {
  readonly config: Config;
  readonly logger: Logger;
  createContext(viewer: Viewer): Context;
  /** Gives the token that GraphiQL sends. */
  demoTokenFor: DemoTokenFor;
  readonly hasEnded: HasEnded;
  /** The schema that is served, if it is not the gateway's own. */
  readonly schema?: GraphQLSchema | undefined;
}

/** The work for a request, or the response to a request that cannot be read. */
type Handled = HttpResponse | Task | Batch;

export type GraphqlHandler = (exchange: Exchange, viewer: Viewer | null) => Handled | Promise<Handled>;

/** GraphQL over SSE: a client that wants one event stream for all its operations begins with a PUT. */
const otherMethod =
  'GraphQL is asked by GET or POST. Event streams carry one operation each: graphql-sse needs singleConnection: false';

/** @throws {SetupError} when the persisted operations cannot be used. */
export function createGraphqlHandler(options: GraphqlOptions) {
  const { config, hasEnded, schema } = options;
  const documents = createDocuments(config, schema);
  const persistedFile = openPersistedFile({ ...options, documents });
  const persisted = createPersistedOperations({ config, file: persistedFile });
  const explorer = config.GRAPHIQL === 'on' ? createExplorer(options.demoTokenFor, config) : undefined;
  const execution = createExecution(config, documents, persisted);
  const tasks = createTasks(execution, createWork(options, persisted), persistedFile);

  /** The work of a POST, or the response to one whose body cannot be read. */
  async function readPost(exchange: Exchange, sender: Viewer | null): Promise<Handled> {
    const began = performance.now();
    if (!postType.test(exchange.request.headers['content-type'] ?? ''))
      return requestFailure(415, otherType, { Connection: 'close' });
    const body = await readText(exchange, config.MAX_BODY_KB);
    if (!Buffer.isBuffer(body)) return body;
    const viewer = sender && (await hasEnded(exchange, sender, began)) ? null : sender;
    // Most bodies are objects, which are parsed when they are not in the cache.
    const batch = body[0] === brace ? undefined : readBatch(config, tasks, { exchange, body, viewer });
    return batch ?? tasks.of(exchange, viewer, { body });
  }

  const graphql: GraphqlHandler = (exchange, viewer) => {
    const { message } = exchange;
    if (message) return tasks.of(exchange, viewer, message);
    if (explorer && asksForPage(exchange)) return explorer(exchange);
    if (isRead(exchange)) return tasks.of(exchange, viewer, { target: exchange.target });
    if (exchange.request.method === 'POST') return readPost(exchange, viewer);
    return requestFailure(405, otherMethod, { Allow: 'GET, HEAD, POST' });
  };
  return { graphql, persistedFile };
}

/** The parameters of a request as they came: in the target of a GET, in a body, or parsed by a transport such as a WebSocket. */
type Given = { readonly target: string } | { readonly body: Buffer } | { readonly content: unknown };

/** A request for an operation. */
interface Received {
  readonly exchange: Exchange;
  readonly viewer: Viewer | null;
  /** The media type of the response. */
  readonly type: ResultType;
}

type Tasks = ReturnType<typeof createTasks>;

function createTasks(
  execution: Execution,
  workOf: ReturnType<typeof createWork>,
  persistedFile: PersistedFile,
) {
  const inTurn = createKeyedQueue<'anonymous'>(() => setImmediate());

  /** A key that equal requests of a viewer share; undefined for requests whose response is never cached. */
  function cacheKeyOf(type: ResultType, given: Given): string | undefined {
    if (!isWholeType(type)) return undefined;
    if ('target' in given) return `GET ${persistedFile.generation} ${type} ${given.target}`;
    const text = 'body' in given ? undefined : exactText(given.content);
    const body = 'body' in given ? given.body : text && Buffer.from(text);
    // Latin-1 maps each byte to one character, and is the fastest way from bytes to a string.
    return body && `POST ${persistedFile.generation} ${type} ${body.toString('latin1')}`;
  }

  const prepare = (exchange: Exchange, viewer: Viewer | null, request: ReadRequest) => {
    const { authorization } = exchange.request.headers;
    const { hasExpiredToken } = exchange;
    const mayWrite = !isRead(exchange);
    return execution.prepare(request, { viewer, authorization, hasExpiredToken, mayWrite });
  };

  return {
    prepare,

    /** The task of a request, or a 406 for a client that accepts no media type which the response could have. */
    of(exchange: Exchange, viewer: Viewer | null, given: Given): HttpResponse | Task {
      const { transport, request } = exchange;
      // Within a WebSocket each result is JSON.
      const type = transport === undefined ? resultTypeFor(request.headers.accept) : graphqlType;
      if (type === undefined) return requestFailure(406, notAcceptable);
      const prepareWork = () =>
        workOf({ exchange, viewer, type }, prepare(exchange, viewer, readGiven(given)));
      if (viewer) return { cacheKey: cacheKeyOf(type, given), prepare: prepareWork };
      // Requests of anonymous clients run one after the other. All other work that is ready comes before the next of them.
      const run = () =>
        inTurn('anonymous', async () => {
          const done = await prepareWork().run();
          return 'isCacheable' in done ? done.response : done;
        });
      return { cacheKey: undefined, prepare: () => other(run) };
    },

    /** The task of a request that was prepared before. */
    ofPrepared: (received: Received, content: unknown, operation: Operation | Rejected): Task => ({
      cacheKey: cacheKeyOf(received.type, { content }),
      prepare: () => workOf(received, operation),
    }),
  };
}

function readGiven(given: Given): ReadRequest {
  if ('target' in given) return readTarget(given.target);
  return readRequest('body' in given ? parseJson(given.body.toString()) : given.content);
}

/** Makes a function that decides how a request is run. */
function createWork(options: GraphqlOptions, persisted: PersistedOperations) {
  const { createContext } = options;
  const subscribe = createSubscribe(options);

  return ({ exchange, viewer, type }: Received, operation: Operation | Rejected): Work => {
    const { report } = exchange;
    const respond = async (result: ExecutionResult) =>
      isWholeType(type)
        ? responseOf(result, type, report)
        : streamOnce(responseOf(result, jsonType, report), type);
    if ('errors' in operation) return other(async () => respond(operation));
    const { label } = operation;
    exchange.operation = label;
    if (operation.type === OperationTypeNode.SUBSCRIPTION && viewer)
      return other(() => subscribe(exchange, viewer, operation));
    const execute = async () => {
      if (type === eventStream) await loadYoga();
      return operation.execute(viewer ? createContext(viewer) : undefined);
    };
    const isMutation = operation.type === OperationTypeNode.MUTATION;
    if (isMutation || operation.readsTokens || !isWholeType(type))
      return other(async () => respond(await execute()), isMutation);
    const mayCache = !persisted.registers(operation.request);
    return {
      kind: 'query',
      async run() {
        const result = await execute();
        // Equal requests may share the response, so it is made for the media type, not for this client's `Accept` header.
        const response = { ...(await respond(result)), operation: label };
        const isCacheable = mayCache && !result.errors;
        // A GET may be conditional (`If-None-Match`).
        return {
          response: isCacheable && isRead(exchange) ? revalidated(response, vary) : response,
          isCacheable,
        };
      },
    };
  };
}

/** The response to a query or mutation as a stream with its one result. */
async function streamOnce(response: HttpResponse, type: StreamType): Promise<HttpResponse> {
  const { stream } = await streamOf(type, textOf(response));
  const body = await buffer(stream);
  return {
    ...response,
    headers: { ...response.headers, 'Content-Type': contentTypeOf(type), 'Content-Length': body.length },
    body,
  };
}

async function* textOf({ body }: HttpResponse) {
  yield body.toString();
}

const other = (run: OtherWork['run'], mayHaveWritten = false): OtherWork => ({
  kind: 'other',
  run,
  mayHaveWritten,
});

/**
 * GraphiQL: a page that the build bundles from the folder `explorer`.
 * @param demoTokenFor returns the token that GraphiQL sends by default, if there is one for the request.
 */
function createExplorer(demoTokenFor: DemoTokenFor, settings: PageSettings): PageHandler {
  // GraphiQL makes styles of its own while it runs.
  const policy = { ...ownFiles, 'style-src': "'self' 'unsafe-inline'" };
  return pageByToken(demoTokenFor, 'Accept, Accept-Encoding, Authorization, Host', async (token = '') => {
    const page = (await bundledPage('explorer'))
      .replace('<!--header-->', headerFor(settings, '/graphql'))
      .replace('data-demo-token=""', `data-demo-token="${token}"`);
    return pageResponse(page, policy);
  });
}

/** How many operations a batch may have. */
const largestBatch = 10;

/**
 * The batch in the body of a POST, or the response that rejects it; undefined for a body that is
 * no list.
 */
function readBatch(
  { BATCHING, MAX_COMPLEXITY }: Pick<Config, 'BATCHING' | 'MAX_COMPLEXITY'>,
  tasks: Tasks,
  { exchange, body, viewer }: { exchange: Exchange; body: Buffer; viewer: Viewer | null },
): Batch | HttpResponse | undefined {
  const operations = parseJson(body.toString());
  if (!Array.isArray(operations)) return undefined;
  const wrong = problemWith(operations, BATCHING === 'on');
  if (wrong !== undefined) return requestFailure(400, wrong);
  if (!viewer) return unauthorizedFailure(exchange);
  const type = typeFor(exchange.request.headers.accept);
  if (type === undefined) return requestFailure(406, notAcceptable);
  return {
    size: operations.length,
    prepare() {
      exchange.operation = 'batch';
      const parts = operations.map((operation) => partOf(operation, tasks, exchange, viewer));
      const complexity = parts.reduce((sum, part) => sum + part.complexity, 0);
      return complexity <= MAX_COMPLEXITY
        ? parts
        : requestFailure(400, tooComplex('batch', complexity, MAX_COMPLEXITY));
    },
    join(responses) {
      exchange.operation = 'batch';
      return joined(responses, type);
    },
  };
}

/** Why the whole batch is rejected; undefined if it is not. */
function problemWith(operations: readonly unknown[], isOn: boolean): string | undefined {
  const { length } = operations;
  if (length === 0) return 'The request body is an empty list; send an object with a query';
  const batch = `The request is a batch of ${length === 1 ? '1 operation' : `${length} operations`}`;
  if (!isOn) return `${batch}, and batches are not run (BATCHING=off); send each in a request of its own`;
  if (length > largestBatch) return `${batch}; at most ${largestBatch} are allowed`;
  const variables = operations.map((each) => (isRecord(each) ? each.variables : undefined));
  return hasTooManyValues(variables) ? tooManyValues : undefined;
}

/** An operation of a batch, with its complexity. It is 0 for a rejected operation, which is never executed. */
interface CountedPart extends BatchPart {
  readonly complexity: number;
}

function partOf(content: unknown, tasks: Tasks, exchange: Exchange, viewer: Viewer): CountedPart {
  // A hash that is not registered yet is rejected now: if a later operation of the batch registered it, this one
  // would run without having been counted.
  const operation = tasks.prepare(exchange, viewer, readRequest(content));
  const task = tasks.ofPrepared({ exchange, viewer, type: jsonType }, content, operation);
  if ('errors' in operation) return { isInOrder: false, task, complexity: 0 };
  const { type, complexity } = operation;
  if (type !== OperationTypeNode.SUBSCRIPTION)
    return { isInOrder: type === OperationTypeNode.MUTATION, task, complexity };
  const message = 'A subscription cannot be part of a batch; send it in a request of its own';
  return { isInOrder: false, task: requestFailure(400, message), complexity: 0 };
}

/** GraphQL over HTTP has no batches, so the response is `application/json` wherever the client accepts that. */
function typeFor(accept: string | undefined): string | undefined {
  const accepted = acceptedOf([jsonType, graphqlType], accept);
  return accepted.includes(jsonType) ? jsonType : accepted[0];
}

function joined(responses: readonly HttpResponse[], type: string): HttpResponse {
  const pieces = responses.flatMap(({ body }, index) => [Buffer.from(index === 0 ? '[' : ','), body]);
  const body = Buffer.concat([...pieces, Buffer.from(']')]);
  return {
    status: 200,
    headers: {
      'Content-Type': `${type}; charset=utf-8`,
      'Content-Length': body.length,
      'Cache-Control': 'no-store',
      Vary: vary,
    },
    body,
    errorCode: responses.find(({ errorCode }) => errorCode !== undefined)?.errorCode,
  };
}
