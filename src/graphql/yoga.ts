/**
 * GraphQL Yoga, for what is special about GraphQL over HTTP: it says what is wrong with a request that is not well-formed, and
 * frames the result of a query or mutation as a stream, where the client asks for one. It executes nothing.
 */

import { STATUS_CODES } from 'node:http';
import { type ExecutionResult, GraphQLError } from 'graphql';
import { createYoga, type Plugin } from 'graphql-yoga';
import type { Exchange } from '../http/exchange.ts';
import type { HttpResponse } from '../http/response.ts';
import { requestFailure, unreadableRequest } from './requestFailure.ts';
import { errorCodeOf, forClient, type Report, type ResultType } from './result.ts';

export interface YogaRequest {
  readonly exchange: Exchange;
  /** Undefined for a GET. */
  readonly body: Buffer | undefined;
  /** The media type of the response. */
  readonly type: ResultType;
  /** Executes the operation. Not called for a request that is not well-formed. */
  execute(): Promise<ExecutionResult>;
}

/** What the plugin needs of a request. */
interface YogaContext extends Pick<YogaRequest, 'execute'> {
  readonly report: Report;
  errorCode?: string;
}

/** A function that responds to a request. */
export function createYogaResponses(): (request: YogaRequest) => Promise<HttpResponse> {
  const yoga = createYoga<YogaContext>({
    graphqlEndpoint: '/graphql',
    landingPage: false,
    cors: false,
    batching: false,
    multipart: false,
    // Relay and others name a persisted operation by this parameter.
    extraParamNames: ['documentId'],
    logging: false,
    // `forClient` says what a client may see.
    maskedErrors: false,
    // The handler has a page of its own.
    graphiql: false,
    plugins: [onlyHttp],
  });
  return async ({ exchange: { target, report }, body, type, execute }) => {
    const context: YogaContext = { execute, report };
    const init = {
      method: body ? 'POST' : 'GET',
      headers: { accept: type, 'content-type': 'application/json' },
      ...(body && { body: new Uint8Array(body) }),
    };
    return responseFrom(await yoga.fetch(new URL(target, 'http://gateway'), init, context), context);
  };
}

/** What a request gets that is not well-formed, though Yoga finds nothing wrong with it: that is all which Yoga does not check. */
export const malformed: YogaRequest['execute'] = async () => ({
  errors: [unreadableRequest('operationName must be a string')],
});

/** Leaves nothing but HTTP to Yoga. */
const onlyHttp: Plugin<YogaContext, YogaContext> = {
  onRequestParse({ requestParser, setRequestParser }) {
    if (!requestParser) return;
    setRequestParser(async (request) => {
      try {
        return await requestParser(request);
      } catch (error) {
        // The only other errors are those of JSON in the target of a GET.
        throw unreadableRequest(
          error instanceof GraphQLError ? error.message : 'variables and extensions must be JSON',
        );
      }
    });
  },
  onParams({ params, setParams, setParamsHandler, context }) {
    // A request may name its document, which Yoga does not know.
    if (params.query == null) setParams({ ...params, query: '' });
    setParamsHandler(() => context.execute());
  },
  onResultProcess({ result, setResult, serverContext }) {
    // The context that was passed to Yoga, whose types do not know it. Nothing is executed that has several results.
    const context = serverContext as YogaContext;
    const given = result as ExecutionResult;
    const shown = forClient(given, context.report);
    Object.assign(context, errorCodeOf(shown));
    // From the errors Yoga reads the status.
    const stringify = () => JSON.stringify(shown);
    setResult({ ...given, stringify });
  },
};

/**
 * Headers about the transfer of a body, which do not hold once the body was read whole. Yoga gives its streams the content
 * coding `none`, which does not exist (RFC 9110, section 8.4.1).
 */
const transferHeaders = new Set(['content-length', 'transfer-encoding', 'connection', 'content-encoding']);

/** Yoga's response with its whole body. Some errors have no body, and get one here. */
async function responseFrom(reply: Response, { errorCode }: YogaContext): Promise<HttpResponse> {
  const { status } = reply;
  const body = Buffer.from(await reply.arrayBuffer());
  const headers = Object.fromEntries(
    [...reply.headers].filter(([name]) => !transferHeaders.has(name.toLowerCase())),
  );
  if (body.length === 0 && status >= 400) return requestFailure(status, STATUS_CODES[status] ?? '', headers);
  return {
    status,
    headers: { 'Cache-Control': 'no-store', ...headers, 'Content-Length': body.length },
    body,
    errorCode,
  };
}
