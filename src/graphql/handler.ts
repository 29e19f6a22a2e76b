/**
 * GraphQL over HTTP: handles requests to `/graphql`. Yoga runs every operation. A POST of JSON that is answered with JSON takes the thin
 * path: its body is read and its response made here, since the classes of Fetch take several times as long as Yoga (docs/decisions/fast-path.md).
 * Everything else goes through Yoga's own handler: GET, event streams, what cannot be read. Browsers get GraphiQL.
 */

import { ReadableStream } from 'node:stream/web';
import { setImmediate } from 'node:timers/promises';
import { type ExecutionResult, GraphQLError, type GraphQLSchema, OperationTypeNode } from 'graphql';
import { type GraphQLParams, isAsyncIterable, type Plugin } from 'graphql-yoga';
import type { Logger } from 'pino';
import type { Recheck, Viewer } from '../auth/viewer.ts';
import type { Config } from '../config/config.ts';
import { createKeyedQueue } from '../database/turns.ts';
import { clientErrorOf } from '../errors.ts';
import type { Exchange } from '../http/exchange.ts';
import { exactText, isRecord, readJson } from '../http/json.ts';
import { asksForPage, isRead, readText } from '../http/request.ts';
import { type HttpResponse, revalidated, type StreamedResponse } from '../http/response.ts';
import type { OtherWork, Task, Work } from '../http/task.ts';
import { createExplorer } from '../pages/apps.ts';
import type { TokenFor } from '../pages/page.ts';
import type { Context } from '../schema/context.ts';
import type { LiveReads } from '../schema/liveReads.ts';
import type { PreparedOperation } from '../schema/operation.ts';
import type { RequestContext } from './context.ts';
import { createDocuments, createReadInTurn, type Named } from './documents.ts';
import { received as receivedFrom, requestFor } from './fetch.ts';
import {
  type Accepted,
  acceptedBy,
  graphqlType,
  notAcceptable,
  requestFailure,
  responseOf,
  textOf,
  unreadableRequest,
  vary,
} from './overHttp.ts';
import { createPersistedOperations, type NamedOperations } from './persisted.ts';
import { noteErrors } from './plugins/operation.ts';
import { startYoga, type Yoga } from './yoga.ts';

/**
 * The media type of a POST (GraphQL over HTTP, section 5.1). A form on another site cannot send it: a browser sends a CORS
 * preflight before such a request.
 */
const postType = /^application\/json *(;|$)/i;

const otherType =
  'A POST takes a body of the type application/json: send the header Content-Type: application/json';

interface GraphqlOptions {
  readonly config: Config;
  readonly logger: Logger;
  createContext(viewer: Viewer): Context;
  /** Runs subscriptions. */
  readonly live: LiveReads;
  /** Gives the token that GraphiQL sends. */
  readonly tokenFor: TokenFor;
  readonly recheck: Recheck;
  readonly persisted: NamedOperations;
  /** The schema that is served, if it is not the gateway's own. */
  readonly schema?: GraphQLSchema | undefined;
  /** Plugins of others. */
  readonly plugins?: readonly Plugin[] | undefined;
}

/** The work for a request, or the response to a request that cannot be read. */
type Handled = HttpResponse | Task;

const otherMethod = 'Use GET or POST';

/** GraphQL over SSE: a client that wants one event stream for all its operations begins with a PUT. */
const noSingleConnection = `${otherMethod}. With graphql-sse, set singleConnection: false`;

export function createGraphqlHandler(options: GraphqlOptions) {
  const { config, recheck } = options;
  const taskFor = createTaskReader(options);
  const explorer = config.GRAPHIQL === 'on' ? createExplorer(options.tokenFor, config) : undefined;

  /** The work of a POST, or the response to one whose body cannot be read. */
  async function readPost(exchange: Exchange, sender: Viewer | null, accepted: Accepted): Promise<Handled> {
    if (!postType.test(exchange.request.headers['content-type'] ?? ''))
      return requestFailure(415, otherType, { Connection: 'close' });
    const body = await readText(exchange, config.MAX_BODY_KB);
    if (!Buffer.isBuffer(body)) return body;
    const viewer = sender && (await recheck(exchange, sender));
    return taskFor({ exchange, viewer, accepted }, { body });
  }

  return (exchange: Exchange, viewer: Viewer | null): Handled | Promise<Handled> => {
    const { message, request } = exchange;
    if (message) return taskFor({ exchange, viewer, accepted: asMessage }, message);
    if (explorer && asksForPage(exchange)) return explorer(exchange);
    if (!isRead(exchange) && request.method !== 'POST')
      return requestFailure(405, request.method === 'PUT' ? noSingleConnection : otherMethod, {
        Allow: 'GET, HEAD, POST',
      });
    const accepted = acceptedBy(request.headers.accept);
    if (!accepted.whole && !accepted.stream) return requestFailure(406, notAcceptable);
    if (isRead(exchange)) return taskFor({ exchange, viewer, accepted }, { target: exchange.target });
    return readPost(exchange, viewer, accepted);
  };
}

/** Within a WebSocket or a tool call each result is JSON. */
const asMessage: Accepted = { whole: graphqlType, stream: undefined };

/** The parameters of a request as they came: in the target of a GET, in a body, or parsed by a transport such as a WebSocket. */
type Given = { readonly target: string } | { readonly body: Buffer } | { readonly content: unknown };

/** A request for an operation. */
type Received = Pick<RequestContext, 'exchange' | 'viewer' | 'accepted'>;

/** Returns a function that reads a request. */
function createTaskReader(options: GraphqlOptions) {
  const { config, plugins: others = [] } = options;
  const documents = createDocuments(config, options.schema, others.length === 0);
  const persisted = createPersistedOperations(config, options.persisted);
  const yoga = startYoga({ ...options, documents, persisted, others });
  const runByYoga = createRun(yoga, others, options.createContext);
  const inTurn = createKeyedQueue<'anonymous'>(() => setImmediate());
  const readInTurn = createReadInTurn(documents, persisted, options.recheck);

  /**
   * The operation of a request of a viewer; undefined for a request that Yoga is going to reject. Registers the document of a request
   * that wants that.
   */
  function resolve(params: unknown, viewer: Viewer, named: Named): PreparedOperation | undefined {
    if (typeof named !== 'string' || !isRecord(params)) return undefined;
    const document = documents.read(named);
    if ('errors' in document) return undefined;
    persisted.register(params, viewer);
    const { operationName: name } = params;
    return document.operation(typeof name === 'string' && name !== '' ? name : undefined);
  }

  function workOf(received: Received, given: Given, params: unknown, named: Named): Work {
    const { viewer, accepted } = received;
    const found = viewer ? resolve(params, viewer, named) : undefined;
    const type = found?.type;
    const respond = () => runByYoga(received, given, params, type);
    const variables = isRecord(params) ? params.variables : undefined;
    if (type !== OperationTypeNode.QUERY || !accepted.whole || found?.readsTokens(variables))
      return other(respond, type === OperationTypeNode.MUTATION);
    const run = async () => {
      const response = await respond();
      if ('stream' in response) throw new Error('a query has one result');
      const isCacheable =
        isRecord(params) && !persisted.registers(params) && response.errorCode === undefined;
      // A GET may be conditional (`If-None-Match`).
      const isConditional = isCacheable && isRead(received.exchange);
      return { response: isConditional ? revalidated(response, vary) : response, isCacheable };
    };
    return { kind: 'query', run };
  }

  return (received: Received, given: Given): Task => {
    const prepare = () => {
      const params = paramsOf(given);
      return readInTurn(params, received, (viewer, named) =>
        workOf({ ...received, viewer }, given, params, named),
      );
    };
    if (received.viewer) return { cacheKey: cacheKeyOf(received, given, options.persisted), prepare };
    // Requests of anonymous clients run one after the other. All other work that is ready comes before the next of them.
    const runInTurn = () =>
      inTurn('anonymous', async () => {
        const work = await prepare();
        const done = await work.run();
        return 'isCacheable' in done ? done.response : done;
      });
    return { cacheKey: undefined, prepare: () => other(runInTurn) };
  };
}

/** A key that equal requests of a viewer share; undefined for requests whose response is never cached. */
function cacheKeyOf(
  { accepted: { whole } }: Received,
  given: Given,
  { generation }: Pick<NamedOperations, 'generation'>,
): string | undefined {
  if (!whole) return undefined;
  if ('target' in given) return `GET ${generation} ${whole} ${given.target}`;
  const text = 'body' in given ? undefined : exactText(given.content);
  const body = 'body' in given ? given.body : text && Buffer.from(text);
  // Latin-1 maps each byte to one character, and is the fastest way from bytes to a string.
  return body && `POST ${generation} ${whole} ${body.toString('latin1')}`;
}

/** The parameters of a request, of which nothing is checked yet, or the error of those that cannot be read. */
function paramsOf(given: Given): unknown {
  if ('content' in given) return given.content;
  if ('target' in given) return paramsIn(new URLSearchParams(given.target.split(/\?(.*)/s)[1]));
  const read = readJson(given.body.toString(), 'The body');
  if ('problem' in read) return unreadableRequest(read.problem);
  if (Array.isArray(read.value))
    return unreadableRequest(
      'The body is a list, but a request has one operation; send each in a request of its own',
    );
  return read.value ?? unreadableRequest('The body must be an object with a query, and not null');
}

/** The parameters in the target of a GET. Others may stand beside them. An empty one counts as none. */
function paramsIn(given: URLSearchParams): unknown {
  const textOf = (name: string) => given.get(name) || undefined;
  const jsonOf = (name: string) => readJson(textOf(name) ?? 'null', `The parameter ${name}`);
  const [variables, extensions] = [jsonOf('variables'), jsonOf('extensions')];
  if ('problem' in variables) return unreadableRequest(variables.problem);
  if ('problem' in extensions) return unreadableRequest(extensions.problem);
  return {
    query: textOf('query'),
    operationName: textOf('operationName'),
    variables: variables.value,
    extensions: extensions.value,
    documentId: given.get('documentId'),
  };
}

const other = (run: OtherWork['run'], mayHaveWritten = false): OtherWork => ({
  kind: 'other',
  run,
  mayHaveWritten,
});

// Yoga's own plugins read nothing else of the request of an operation.
const post = { method: 'POST' } as Request;

/** Makes a function that has Yoga run a request. */
function createRun(yoga: Yoga, others: readonly Plugin[], createContext: GraphqlOptions['createContext']) {
  // Such a plugin waits for requests and responses of HTTP, which the thin path does not have, or may add one that does.
  const isThinPathOpen = !others.some(
    (each) =>
      each.onRequest || each.onRequestParse || each.onResultProcess || each.onResponse || each.onPluginInit,
  );

  /** The result of an operation, or the errors of plugins that reject it. */
  async function resultFor(
    context: RequestContext,
  ): Promise<ExecutionResult | AsyncIterable<ExecutionResult>> {
    const { exchange, accepted, given } = context;
    try {
      if (given instanceof GraphQLError) throw given;
      // It takes as long to make as the rest of the thin path.
      const request = others.length > 0 ? requestFor(exchange, accepted) : post;
      // Plugins check the parameters.
      return (await yoga.getResultForParams({ params: given as GraphQLParams, request }, context)) ?? {};
    } catch (error) {
      const errors: readonly unknown[] = error instanceof AggregateError ? error.errors : [error];
      return { errors: errors.map(clientErrorOf) };
    }
  }

  return async (
    { exchange, viewer, accepted }: Received,
    given: Given,
    params: unknown,
    expected: OperationTypeNode | undefined,
  ): Promise<HttpResponse | StreamedResponse> => {
    const own = { exchange, viewer, accepted, given: params, expected, progress: {} };
    const context: RequestContext = viewer ? Object.assign(createContext(viewer), own) : own;
    const isMessage = 'content' in given;
    const isThin = 'body' in given && isThinPathOpen && expected !== OperationTypeNode.SUBSCRIPTION;
    // Only the thin path takes what a WebSocket or a tool has sent.
    if ((isMessage || isThin) && accepted.whole) {
      const result = await resultFor(context);
      if (isAsyncIterable(result)) return streamOf(result, context);
      noteErrors(result, context);
      return noted(responseOf(result, accepted.whole), context);
    }
    const streamed = { ...context, broken: new AbortController() };
    const request = requestFor(exchange, accepted);
    return noted(await receivedFrom(await yoga.fetch(request, streamed), streamed), streamed);
  };
}

/** The response with what the log has of it. */
const noted = <Response extends HttpResponse | StreamedResponse>(
  response: Response,
  { progress: { operation, errorCode } }: RequestContext,
): Response => Object.assign(response, { operation: operation?.label, errorCode });

/** Each result as a piece of a stream, for a WebSocket, which has heartbeats and an end of its own. */
const streamOf = (
  results: AsyncIterable<ExecutionResult>,
  { progress }: RequestContext,
): StreamedResponse => ({
  status: 200,
  headers: {},
  stream: ReadableStream.from(textsOf(results)),
  ended: () => progress.end?.(),
});

async function* textsOf(results: AsyncIterable<ExecutionResult>) {
  for await (const result of results) yield textOf(result);
}
