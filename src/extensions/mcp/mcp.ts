/**
 * The main file of this folder. It offers tools to language models by the Model Context Protocol (Streamable HTTP, without
 * sessions). A tool call makes a request of the REST or GraphQL API. The module is loaded only where `MCP` is set.
 *
 * A tool can do nothing that its request could not, and counts as that request. To replace it: run a server of the SDK beside the
 * gateway, which sends these requests itself.
 */

import {
  createMcpHandler,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  Server,
} from '@modelcontextprotocol/server';
import { unauthorized, type Viewer } from '../../auth/viewer.ts';
import type { Config } from '../../config/config.ts';
import { messages } from '../../errors.ts';
import type { PipelineParts } from '../../extensionPoints.ts';
import { hasTooManyValues, isTooDeep } from '../../graphql/limits.ts';
import { type Exchange, requestWithin, restPath } from '../../http/exchange.ts';
import { isRecord, readJson } from '../../http/json.ts';
import { readText } from '../../http/request.ts';
import { type HttpResponse, isResponse, jsonResponse } from '../../http/response.ts';
import { printedSchema } from '../../schema/schema.ts';
import { release } from '../../version.ts';
import { errorBody } from './endpoint.ts';
import {
  type Arguments,
  createQueryTool,
  type InnerRequest,
  persistedTools,
  type Result,
  restTools,
  type Tool,
} from './tools.ts';

interface McpOptions extends PipelineParts {
  readonly config: Config;
  /** Whether there are tools that change something. */
  readonly mayWrite: boolean;
}

export function createMcp(options: McpOptions) {
  const { config } = options;
  const toolsNow = createTools(options);
  const hasSchema = config.INTROSPECTION === 'on';

  return async (exchange: Exchange, sender: Viewer | null): Promise<HttpResponse> => {
    if (!sender) return unauthorized(exchange);
    if (exchange.request.method !== 'POST') {
      const { headers, ...others } = rejected(messages.methodNotAllowed);
      return { ...others, status: 405, headers: { ...headers, Allow: 'POST' } };
    }
    const read = await readMessage(exchange, config.MAX_BODY_KB);
    if (isResponse(read)) return read;
    const { message } = read;
    const viewer = await options.recheck(exchange, sender);
    if (!viewer) return unauthorized(exchange);
    const run = (inner: Exchange) => options.run(exchange, inner, viewer);
    const call = (tool: Tool, given: Arguments) => callTool(exchange, run, tool, given);
    const { fetch } = createMcpHandler(() => createServer(toolsNow(), hasSchema, call), {
      onerror: () => {},
      keepAliveMs: 0,
    });
    return wholeResponse(await fetch(requestOf(exchange), { parsedBody: message }), exchange);
  };
}

const schemaResource = {
  uri: 'dovetail://schema.graphql',
  name: 'schema',
  title: 'The GraphQL schema',
  description: 'What graphqlQuery may ask for: every type, field and argument, with what they mean.',
  mimeType: 'application/graphql',
};

const instructions = `Trainer devices, training programs and sessions, locks and lock sessions of the one user whose token is used.
Prefer the tool that is named after what is needed; graphqlQuery can filter, sort, count and join.`;

/**
 * Creates a server for one request. It has no state that a later request would need.
 * @param hasSchema whether the schema may be read.
 * @param call runs a tool.
 */
function createServer(
  tools: readonly Tool[],
  hasSchema: boolean,
  call: (tool: Tool, given: Arguments) => Promise<Result>,
): Server {
  const server = new Server(
    { name: 'dovetail', title: 'Dovetail', version: release },
    { capabilities: { tools: {}, ...(hasSchema && { resources: {} }) }, instructions },
  );

  server.setRequestHandler('tools/list', () => ({
    tools: tools.map(({ requestFor: _, resultOf: __, inputSchema, ...shown }) => ({
      ...shown,
      inputSchema: { ...inputSchema },
    })),
  }));

  server.setRequestHandler('tools/call', async ({ params }) => {
    const tool = tools.find(({ name }) => name === params.name);
    if (!tool)
      throw new ProtocolError(
        ProtocolErrorCode.InvalidParams,
        `There is no tool ${JSON.stringify(params.name.slice(0, 100))}`,
      );
    const { content, error } = await call(tool, params.arguments ?? {});
    const text = [error, content && JSON.stringify(content)].filter((part) => part !== undefined);
    return {
      content: text.map((part) => ({ type: 'text' as const, text: part })),
      ...(content && error === undefined && { structuredContent: content }),
      ...(error !== undefined && { isError: true }),
    };
  });

  if (hasSchema) {
    server.setRequestHandler('resources/list', () => ({ resources: [schemaResource] }));
    server.setRequestHandler('resources/read', ({ params: { uri } }) => {
      if (uri !== schemaResource.uri) throw new ResourceNotFoundError(uri.slice(0, 100));
      return { contents: [{ uri, mimeType: schemaResource.mimeType, text: printedSchema() }] };
    });
  }
  return server;
}

/** A function that gives the current tools. They change with the file of persisted operations. */
function createTools({ config, mayWrite, persisted }: McpOptions): () => readonly Tool[] {
  const queryTool = createQueryTool(config);
  const own = [
    ...restTools.filter(({ annotations }) => mayWrite || annotations.readOnlyHint),
    ...(config.PERSISTED_OPERATIONS === 'only' ? [] : [queryTool]),
  ];
  // The name of a tool that the settings leave out stays reserved.
  const taken = new Set([...restTools, queryTool].map(({ name }) => name));
  let known: { readonly generation: number; readonly tools: readonly Tool[] } | undefined;
  return () => {
    const { generation } = persisted;
    if (known?.generation !== generation)
      known = { generation, tools: [...own, ...persistedTools(persisted, { mayWrite, taken })] };
    return known.tools;
  };
}

/** Calls a tool. Errors are results as well, since the model has to read them. */
async function callTool(
  exchange: Exchange,
  run: (inner: Exchange) => ReturnType<McpOptions['run']>,
  tool: Tool,
  given: Arguments,
): Promise<Result> {
  try {
    const request = tool.requestFor(given);
    if (typeof request === 'string') return failed(exchange, request, 'BAD_USER_INPUT');
    const inner = innerExchange(exchange, request);
    const response = await run(inner).finally(() => {
      exchange.operation = inner.operation;
    });
    if ('stream' in response) throw new Error(`${tool.name} gave a stream`);
    exchange.errorCode = response.errorCode;
    if (response.operation !== undefined) exchange.operation = response.operation;
    return tool.resultOf(response);
  } catch (error) {
    exchange.report(error);
    return failed(exchange, messages.internal, 'INTERNAL_SERVER_ERROR');
  }
}

/** Creates the exchange of a request inside another one. The client and the log see the outer exchange only. */
function innerExchange(outer: Exchange, { method, target, content }: InnerRequest): Exchange {
  const request = requestWithin(outer.request, method, target, {
    authorization: outer.request.headers.authorization,
    accept: 'application/json',
    'content-type': content === undefined ? undefined : 'application/json',
  });
  const [path = ''] = target.split('?', 1);
  // Set even without a body: the body of the outer request has been read already.
  const message = { content, cutShort() {} };
  const endpoint = path.startsWith(`${restPath}/`) ? 'rest' : 'graphql';
  const ofExchange = { request, target, path, endpoint, message };
  return Object.create(outer, Object.getOwnPropertyDescriptors(ofExchange));
}

function failed(exchange: Exchange, error: string, code: string): Result {
  exchange.errorCode = code;
  return { content: undefined, error };
}

interface Message {
  readonly method: string;
  readonly params?: unknown;
}

/**
 * Reads the message of a request. A list of messages is rejected: it would count as one request.
 * @returns the message inside an object: a client could give the message itself the members of a response.
 */
async function readMessage(
  exchange: Exchange,
  maxKilobytes: number,
): Promise<{ readonly message: Message } | HttpResponse> {
  const body = await readText(exchange, maxKilobytes);
  if (!Buffer.isBuffer(body)) return body;
  const read = readJson(body.toString(), 'The body');
  if ('problem' in read) return rejected(read.problem, notJson);
  const { value: message } = read;
  if (!isMessage(message)) return rejected(notOneRequest, invalidRequest);
  // The SDK lists all wrong values in an error message, which takes 5 s for 120,000 of them.
  if (hasTooManyValues(message)) return rejected('The request has too many values', invalidRequest);
  if (message.method === 'subscriptions/listen') return rejected('This server sends no notifications');
  return { message };
}

const rejected = (message: string, rpcCode?: number): HttpResponse => ({
  ...jsonResponse(400, JSON.stringify(errorBody(message, rpcCode))),
  errorCode: 'BAD_USER_INPUT',
});

/** Codes of JSON-RPC 2.0, section 5.1. */
const [notJson, invalidRequest] = [-32_700, -32_600];
const notOneRequest = 'The body must be one JSON-RPC request; batches are not supported';

/** Whether a value is one request of JSON-RPC. Responses are not accepted, since the gateway sends no requests. */
const isMessage = (value: unknown): value is Record<string, unknown> & Message =>
  isRecord(value) && typeof value.method === 'string' && !isTooDeep(value);

/** The request for the SDK, without its body, which is given to the SDK as a value. */
function requestOf({ request }: Exchange): Request {
  const headers = Object.entries(request.headers).flatMap(([name, value]): [string, string][] =>
    value === undefined || name === 'authorization' ? [] : [[name, String(value)]],
  );
  return new Request('http://gateway/mcp', { method: 'POST', headers });
}

/** The SDK's response with its whole body. An event stream has an end as well, since it carries the result alone. */
async function wholeResponse(reply: Response, exchange: Exchange): Promise<HttpResponse> {
  const body = Buffer.from(await reply.arrayBuffer());
  const type = reply.headers.get('content-type');
  return {
    status: reply.status,
    headers: {
      ...(type !== null && { 'Content-Type': type }),
      'Content-Length': body.length,
      'Cache-Control': 'no-store',
    },
    body,
    // The code is set while the body is made.
    errorCode: exchange.errorCode,
  };
}
