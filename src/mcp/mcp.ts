/**
 * The front of this folder. It offers tools to language models by the Model Context Protocol (Streamable HTTP, without
 * sessions). A call of a tool runs as the request of the REST or GraphQL API that it stands for. The module is loaded only where
 * `MCP` is set.
 *
 * A tool can do nothing that its request could not, and counts as that request. A server of the SDK beside the gateway may take
 * its place, which sends these requests itself.
 */

import { isUtf8 } from 'node:buffer';
import { createMcpHandler } from '@modelcontextprotocol/server';
import { type HasEnded, problemOf, type Viewer } from '../auth/viewer.ts';
import type { Config } from '../config/config.ts';
import { challengeFor, messages, unauthorizedMessage } from '../errors.ts';
import { hasTooManyValues, isRequestTooDeep } from '../graphql/limits.ts';
import type { PersistedFile } from '../graphql/persistedFile.ts';
import { acceptsIdentityOnly, isEncoded, readBody } from '../http/body.ts';
import { errorResponse } from '../http/errorResponse.ts';
import { type Exchange, innerExchange } from '../http/exchange.ts';
import { isRecord, parseJson } from '../http/json.ts';
import { type HttpResponse, isResponse, type StreamedResponse } from '../http/response.ts';
import { createQueryTool, persistedTools } from './graphqlTools.ts';
import { restTools } from './restTools.ts';
import type { Arguments, Result, Tool } from './tool.ts';
import { createServer } from './toolServer.ts';

export interface McpOptions {
  readonly config: Config;
  readonly persistedFile: Pick<PersistedFile, 'generation' | 'operations'>;
  readonly hasEnded: HasEnded;
  /** Runs the request of an API that a call stands for, as if the client had sent that request. */
  run(outer: Exchange, inner: Exchange, viewer: Viewer): Promise<HttpResponse | StreamedResponse>;
}

export type McpHandler = (exchange: Exchange, viewer: Viewer | null) => Promise<HttpResponse>;

/** The methods of the protocol, which the log has as the operation. */
const methods = new Set([
  'initialize',
  'ping',
  'server/discover',
  'tools/list',
  'tools/call',
  'resources/list',
  'resources/templates/list',
  'resources/read',
]);

export function createMcp(options: McpOptions): McpHandler {
  const { config } = options;
  const toolsNow = createTools(options);
  const hasSchema = config.INTROSPECTION === 'on';

  return async (exchange, viewer) => {
    if (!viewer) return unauthorized(exchange);
    if (exchange.request.method !== 'POST') return errorResponse('mcp', notAllowed, { Allow: 'POST' });
    const began = performance.now();
    const read = await readMessage(exchange, config.MAX_BODY_KB);
    if (isResponse(read)) return read;
    const { message } = read;
    if (await options.hasEnded(viewer, began)) return unauthorized(exchange);
    exchange.operation = methods.has(message.method) ? message.method : undefined;
    const { fetch } = createMcpHandler(
      () =>
        createServer({
          tools: toolsNow(),
          hasSchema,
          call: (tool, given) => callTool({ exchange, viewer, run: options.run }, tool, given),
        }),
      { onerror: () => {}, keepAliveMs: 0 },
    );
    return wholeResponse(await fetch(requestOf(exchange), { parsedBody: message }), exchange);
  };
}

/** A function that gives the current tools. They change with the file of persisted operations. */
function createTools({ config, persistedFile }: McpOptions): () => readonly Tool[] {
  const mayWrite = config.MCP === 'write';
  const own = [
    ...restTools.filter(({ annotations }) => mayWrite || annotations.readOnlyHint),
    ...(config.PERSISTED_OPERATIONS === 'only' ? [] : [createQueryTool(config)]),
  ];
  // The name of a tool that the settings leave out stays reserved.
  const taken = new Set([...own, ...restTools].map(({ name }) => name));
  let known: { readonly generation: number; readonly tools: readonly Tool[] } | undefined;
  return () => {
    const { generation } = persistedFile;
    if (known?.generation !== generation)
      known = { generation, tools: [...own, ...persistedTools(persistedFile, { mayWrite, taken })] };
    return known.tools;
  };
}

interface Calling extends Pick<McpOptions, 'run'> {
  readonly exchange: Exchange;
  readonly viewer: Viewer;
}

/** Calls a tool. Errors are results as well, since the model has to read them. */
async function callTool({ exchange, viewer, run }: Calling, tool: Tool, given: Arguments): Promise<Result> {
  try {
    const request = tool.requestFor(given);
    if (typeof request === 'string') return failed(exchange, request, 'BAD_USER_INPUT');
    const inner = innerExchange(exchange, request);
    const response = await run(exchange, inner, viewer).finally(() => {
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
 * @returns the message inside an object, since the client could give it the members of a response.
 */
async function readMessage(
  exchange: Exchange,
  maxKilobytes: number,
): Promise<{ readonly message: Message } | HttpResponse> {
  if (isEncoded(exchange.request)) return errorResponse('mcp', encoded, acceptsIdentityOnly);
  const body = await readBody(exchange.request, maxKilobytes * 1024);
  if (!body) return errorResponse('mcp', tooLarge, { Connection: 'close' });
  if (!isUtf8(body)) return errorResponse('mcp', { code: 'BAD_USER_INPUT', message: messages.bodyNotUtf8 });
  const message = parseJson(body.toString());
  if (message === undefined) return errorResponse('mcp', notJson);
  if (!isMessage(message)) return errorResponse('mcp', notOneRequest);
  if (isTooLarge(message)) return errorResponse('mcp', tooManyValues);
  if (message.method === 'subscriptions/listen') return errorResponse('mcp', noStreams);
  return { message };
}

const encoded = { status: 415, code: 'BAD_USER_INPUT', message: messages.bodyEncoded } as const;
const tooLarge = { status: 413, code: 'BAD_USER_INPUT', message: messages.bodyTooLarge } as const;
const notAllowed = { status: 405, code: 'BAD_USER_INPUT', message: messages.methodNotAllowed } as const;
const noStreams = { code: 'BAD_USER_INPUT', message: 'This server sends no notifications' } as const;
/** Codes of JSON-RPC 2.0, section 5.1. */
const notJson = { code: 'BAD_USER_INPUT', message: 'The body is not JSON', rpcCode: -32_700 } as const;
const notOneRequest = {
  code: 'BAD_USER_INPUT',
  message: 'The body must be one JSON-RPC request; batches are not supported',
  rpcCode: -32_600,
} as const;

/** How many values a message may have beside the arguments of a tool, which have limits of their own. */
const mostValues = 200;
const tooManyValues = {
  code: 'BAD_USER_INPUT',
  message: `The request has more than ${mostValues} values; at most ${mostValues} are allowed`,
  rpcCode: -32_600,
} as const;

/**
 * Whether a message has too many values. The SDK lists all wrong values in an error message, which takes 5 s for 120,000 of
 * them.
 */
function isTooLarge(message: Message): boolean {
  if (message.method !== 'tools/call') return hasTooManyValues(message, mostValues);
  const { arguments: _, ...params } = Object(message.params);
  return hasTooManyValues({ ...message, params }, mostValues);
}

/** Whether a value is one request of JSON-RPC. Responses are not accepted, since the gateway sends no requests. */
const isMessage = (value: unknown): value is Record<string, unknown> & Message =>
  isRecord(value) && typeof value.method === 'string' && !isRequestTooDeep(value);

function unauthorized({ request }: Exchange): HttpResponse {
  const problem = problemOf(request.headers.authorization);
  const message = unauthorizedMessage(problem);
  return errorResponse('mcp', { code: 'UNAUTHENTICATED', message }, challengeFor(problem));
}

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
