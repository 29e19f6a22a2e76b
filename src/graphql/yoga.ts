/** Configures GraphQL Yoga, which implements all of GraphQL over HTTP. */

import {
  type DocumentNode,
  type ExecutionResult,
  execute,
  GraphQLError,
  getOperationAST,
  Kind,
  type OperationTypeNode,
} from 'graphql';
import { createYoga, isAsyncIterable, type Plugin } from 'graphql-yoga';
import type { Viewer } from '../auth/viewer.ts';
import { operationSpans } from '../channels.ts';
import type { Config } from '../config/config.ts';
import { type TokenProblem, unauthenticated } from '../errors.ts';
import { nameArguments } from '../schema/argumentErrors.ts';
import { labelOf } from '../schema/compile.ts';
import type { Context } from '../schema/context.ts';
import { forClient, type Report } from './clientErrors.ts';
import { type Documents, maxErrors } from './documents.ts';
import type { PersistedOperations } from './persisted.ts';
import type { LiveResult } from './readers.ts';
import { badRequest, requestError, unreadableRequest } from './requestErrors.ts';
import type { Subscribe } from './subscribe.ts';

export interface YogaOptions {
  config: Config;
  documents: Documents;
  persisted: PersistedOperations;
  createContext(viewer: Viewer): Context;
  subscribe: Subscribe;
}

/** What is known about a request before Yoga gets it, and what Yoga finds out about it. */
export interface YogaContext {
  readonly viewer: Viewer | null;
  /** Why there is no viewer. Of no meaning if there is one. */
  readonly tokenProblem: TokenProblem;
  /** What is known of the operation that it executes. */
  readonly executed: {
    type?: OperationTypeNode;
    label?: string;
    failed: boolean;
    errorCode?: string;
    /** The results of a subscription. The response that Yoga makes does not have them. */
    results?: AsyncIterable<LiveResult>;
  };
  readonly report: Report;
}

/** Yoga without CORS, GraphiQL, logging and the masking of errors, which other modules do. */
export function createGraphqlYoga(options: YogaOptions) {
  const { createContext } = options;
  return createYoga<YogaContext, Partial<Context>>({
    schema: options.documents.schema,
    graphqlEndpoint: '/graphql',
    landingPage: false,
    cors: false,
    batching: false,
    multipart: false,
    // Relay and others name a persisted operation by this parameter.
    extraParamNames: ['documentId'],
    // `documents.ts` caches documents, also for the fast path.
    parserAndValidationCache: false,
    logging: false,
    // `clientErrors` below says what a client may see.
    maskedErrors: false,
    context: ({ viewer }) => (viewer ? createContext(viewer) : {}),
    // The handler has a page of its own.
    graphiql: false,
    plugins: [
      readable,
      referenceExecution(options),
      limited(options),
      noteExecuted,
      clientErrors,
      resultsAside,
    ],
  });
}

/** Reads requests. One that cannot be read gets a 400, whatever media type the client accepts. */
const readable: Plugin = {
  onRequestParse({ requestParser, setRequestParser }) {
    if (!requestParser) return;
    setRequestParser(async (request) => {
      let parameters: Awaited<ReturnType<typeof requestParser>>;
      try {
        parameters = await requestParser(request);
      } catch (error) {
        // The only other errors are those of JSON in the target of a GET.
        throw unreadableRequest(
          error instanceof GraphQLError ? error.message : 'variables and extensions must be JSON',
        );
      }
      // Of a target, Yoga reads only the parameters of GraphQL over HTTP.
      const documentId =
        request.method === 'GET' ? new URL(request.url).searchParams.get('documentId') : null;
      return documentId === null || Array.isArray(parameters) ? parameters : { ...parameters, documentId };
    });
  },
};

/** Has graphql-js run the operations: Yoga's own executor drops a variable called `__proto__`. */
function referenceExecution({ config, subscribe }: YogaOptions): Plugin {
  const settings = {
    options: { maxCoercionErrors: maxErrors },
    hideSuggestions: config.INTROSPECTION !== 'on',
  };
  return {
    onExecute: ({ setExecuteFn }) =>
      setExecuteFn(async (args) => explained(await execute({ ...args, ...settings }), args.document)),
    onSubscribe: ({ setSubscribeFn }) =>
      setSubscribeFn(async (args) => explained(await subscribe({ ...args, ...settings }), args.document)),
  };
}

/** Names the arguments in errors. Where nothing was executed, the request is wrong, and gets a 400. */
function explained<Result extends ExecutionResult | AsyncIterable<ExecutionResult>>(
  result: Result,
  document: DocumentNode,
): Result {
  if (isAsyncIterable(result)) return result;
  nameArguments(document, result.errors);
  if ('data' in result) return result;
  for (const { extensions } of result.errors ?? []) Object.assign(extensions, { http: badRequest });
  return result;
}

/** The error of a request whose `operationName` does not choose one of the document's operations. */
function noSuchOperation({ definitions }: DocumentNode, name: unknown): GraphQLError {
  if (name != null && typeof name !== 'string') return unreadableRequest('operationName must be a string');
  const names = definitions.flatMap((each) =>
    each.kind === Kind.OPERATION_DEFINITION ? [each.name?.value ?? 'one without a name'] : [],
  );
  const has = `the document has ${names.length === 0 ? 'none' : names.join(', ')}`;
  return requestError(
    name ? `There is no operation ${name}: ${has}` : `operationName has to name the operation: ${has}`,
  );
}

/** An operation that is about to run, as Yoga passes it to plugins. */
interface Execution {
  args: {
    readonly document: DocumentNode;
    readonly operationName?: string | null | undefined;
    readonly variableValues?: Readonly<Record<string, unknown>> | null | undefined;
    readonly contextValue?: unknown;
  };
  setResultAndStopExecution(result: ExecutionResult): void;
}

/** Reads documents with the same limits as the fast path. Anonymous clients may ask for nothing but the schema. */
function limited({ documents, persisted }: YogaOptions): Plugin<YogaContext, YogaContext> {
  const checkComplexity = ({ args, setResultAndStopExecution }: Execution) => {
    const { document, operationName, variableValues } = args;
    const isAnonymous = !passedIn(args.contextValue).viewer;
    const error = documents.tooComplex(
      document,
      operationName ?? undefined,
      variableValues ?? {},
      isAnonymous,
    );
    if (error) setResultAndStopExecution({ errors: [error] });
  };
  return {
    onParams({ params, setParams, context }) {
      const text = persisted.textFor(params, context.viewer);
      // Anonymous clients are not told which operations are persisted, nor that only those are run.
      if (!context.viewer && text !== params.query) throw unauthenticated(context.tokenProblem);
      if (text instanceof GraphQLError) throw text;
      if (text !== undefined) setParams({ ...params, query: text });
      // Not well-formed: a 400 whatever media type the client accepts (GraphQL over HTTP, section 6.4.1).
      else if (params.query == null) throw unreadableRequest('Must provide query string.');
    },
    onParse({ context, params, setParsedDocument }) {
      const text = params.source.toString();
      const document = context.viewer ? documents.read(text) : documents.readAnonymous(text);
      if (!document) throw unauthenticated(context.tokenProblem);
      const { operationName } = context.params;
      if (!getOperationAST(document, operationName)) throw noSuchOperation(document, operationName);
      setParsedDocument(document);
    },
    // Already validated in onParse.
    onValidate: ({ setResult }) => setResult([]),
    onExecute: checkComplexity,
    onSubscribe: checkComplexity,
  };
}

/**
 * Notes what the request was, from which it follows whether it may have written and whether its response is
 * cacheable.
 */
const noteExecuted: Plugin<YogaContext> = {
  onExecute({ args, context, executeFn, setExecuteFn }) {
    note(args, context.executed);
    const { label } = context.executed;
    if (label === undefined || !operationSpans.hasSubscribers) return;
    setExecuteFn((given) => operationSpans.tracePromise(async () => executeFn(given), { label }));
  },
  onSubscribe: ({ args, context }) => note(args, context.executed),
  onResultProcess({ result, serverContext }) {
    const { executed } = passedIn(serverContext);
    if (!('data' in result) || ('errors' in result && result.errors)) executed.failed = true;
  },
};

function note({ document, operationName }: Execution['args'], executed: YogaContext['executed']): void {
  const operation = getOperationAST(document, operationName);
  if (!operation) return;
  executed.type = operation.operation;
  executed.label = labelOf(operation);
}

/** Takes the results of a subscription out of Yoga's response: `transports/framing.ts` writes them. */
const resultsAside: Plugin<YogaContext> = {
  onResultProcess({ result, setResultProcessor, serverContext }) {
    if (!isAsyncIterable(result)) return;
    setResultProcessor((results, { Response }) => {
      // These are what `subscribe` returned to Yoga, whose type for them is wider.
      passedIn(serverContext).executed.results = results as AsyncIterable<LiveResult>;
      return new Response(null);
    }, 'text/event-stream');
  },
};

/** Masks errors that clients must not see. The results of subscriptions are masked already. */
const clientErrors: Plugin<YogaContext> = {
  onResultProcess({ result, setResult, serverContext }) {
    if (!('errors' in result)) return;
    const { report, executed } = passedIn(serverContext);
    const shown = forClient(result, report);
    const [first] = shown.errors ?? [];
    if (first) executed.errorCode ??= String(first.extensions.code);
    setResult(shown);
  },
};

/** The context that was passed to Yoga, whose types do not know it. */
const passedIn = (serverContext: unknown) => serverContext as YogaContext;
