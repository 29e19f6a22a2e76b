/** Yoga over the schema: all of GraphQL over HTTP. */

import {
  type DocumentNode,
  type ExecutionResult,
  execute,
  GraphQLError,
  getOperationAST,
  type OperationTypeNode,
} from 'graphql';
import { createYoga, isAsyncIterable, type Plugin } from 'graphql-yoga';
import type { Viewer } from '../auth/viewer.ts';
import { operationSpans } from '../channels.ts';
import type { Config } from '../config.ts';
import { errorForClient, type TokenProblem, unauthenticated } from '../errors.ts';
import { nameArguments } from '../schema/argumentErrors.ts';
import { labelOf } from '../schema/compile.ts';
import type { Context } from '../schema/context.ts';
import { schema } from '../schema/schema.ts';
import type { Documents } from './documents.ts';
import { unreadable } from './limits.ts';
import type { PersistedOperations } from './persisted.ts';
import { createSubscribe, type Subscribe } from './subscribe.ts';

export interface YogaOptions {
  config: Config;
  documents: Documents;
  persisted: PersistedOperations;
  createContext(viewer: Viewer): Context;
}

/** What is known of a request before Yoga sees it, and what it turned out to be. */
export interface YogaContext {
  readonly viewer: Viewer | null;
  /** Why there is no viewer, where there is none. */
  readonly tokenProblem: TokenProblem;
  readonly outcome: { type?: OperationTypeNode; label?: string; failed: boolean; errorCode?: string };
  /** Called with every error that is hidden from the client. */
  report(error: unknown): void;
}

/** Yoga without what is done elsewhere: CORS, the explorer, the log, and the masking of errors. */
export function createGraphqlYoga(options: YogaOptions) {
  const { createContext } = options;
  return createYoga<YogaContext, Partial<Context>>({
    schema,
    graphqlEndpoint: '/graphql',
    landingPage: false,
    cors: false,
    batching: false,
    multipart: false,
    // How Relay and others name a persisted operation.
    extraParamNames: ['documentId'],
    // The documents are remembered for the fast path as well.
    parserAndValidationCache: false,
    logging: false,
    // `clientErrors` below says what a client may see.
    maskedErrors: false,
    context: ({ viewer }) => (viewer ? createContext(viewer) : {}),
    // The handler has a page of its own.
    graphiql: false,
    plugins: [
      readable,
      referenceExecution(createSubscribe()),
      limited(options),
      outcomes,
      changesOnly,
      clientErrors,
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
        // Only the JSON in the target of a GET makes errors of another kind.
        throw unreadable(
          error instanceof GraphQLError ? error.message : 'variables and extensions must be JSON',
        );
      }
      // Yoga's reader of targets knows no other parameters than those of GraphQL over HTTP.
      const documentId =
        request.method === 'GET' ? new URL(request.url).searchParams.get('documentId') : null;
      return documentId === null || Array.isArray(parameters) ? parameters : { ...parameters, documentId };
    });
  },
};

/** Has graphql-js run the operations: Yoga's own executor drops a variable called `__proto__`. */
const referenceExecution = (subscribe: Subscribe): Plugin => ({
  onExecute: ({ setExecuteFn }) =>
    setExecuteFn(async (args) => explained(await execute(args), args.document)),
  onSubscribe: ({ setSubscribeFn }) =>
    setSubscribeFn(async (args) => explained(await subscribe(args), args.document)),
});

/** Where nothing was executed the variables are wrong, which is a 400 whatever media type the client accepts. */
function explained<Result extends ExecutionResult | AsyncIterable<ExecutionResult>>(
  result: Result,
  document: DocumentNode,
): Result {
  if (isAsyncIterable(result)) return result;
  nameArguments(document, result.errors);
  if ('data' in result) return result;
  for (const { extensions } of result.errors ?? []) Object.assign(extensions, { http: { status: 400 } });
  return result;
}

/** What Yoga tells of an operation that is about to run. */
interface Execution {
  args: {
    readonly document: DocumentNode;
    readonly operationName?: string | null | undefined;
    readonly variableValues?: Readonly<Record<string, unknown>> | null | undefined;
    readonly contextValue?: unknown;
  };
  setResultAndStopExecution(result: ExecutionResult): void;
}

/** Reads documents as the fast path does: within the limits, and for anonymous clients nothing but the schema. */
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
      else if (params.query == null) throw unreadable('Must provide query string.');
    },
    onParse({ context, params, setParsedDocument }) {
      const text = params.source.toString();
      const document = context.viewer ? documents.read(text) : documents.readAnonymous(text);
      if (!document) throw unauthenticated(context.tokenProblem);
      setParsedDocument(document);
    },
    // Already validated in onParse.
    onValidate: ({ setResult }) => setResult([]),
    onExecute: checkComplexity,
    onSubscribe: checkComplexity,
  };
}

/** Notes what the request was, from which it follows whether it may have written and whether its response is cacheable. */
const outcomes: Plugin<YogaContext> = {
  onExecute({ args, context, executeFn, setExecuteFn }) {
    note(args, context.outcome);
    const { label } = context.outcome;
    if (label === undefined || !operationSpans.hasSubscribers) return;
    setExecuteFn((given) => operationSpans.tracePromise(async () => executeFn(given), { label }));
  },
  onSubscribe: ({ args, context }) => note(args, context.outcome),
  onResultProcess({ result, serverContext }) {
    const { outcome } = passedIn(serverContext);
    if (!('data' in result) || ('errors' in result && result.errors)) outcome.failed = true;
  },
};

function note({ document, operationName }: Execution['args'], outcome: YogaContext['outcome']): void {
  const operation = getOperationAST(document, operationName);
  if (!operation) return;
  outcome.type = operation.operation;
  outcome.label = labelOf(operation);
}

/** Sends no result twice in a row to a subscriber: many changes do not touch what it selected. */
const changesOnly: Plugin = {
  onSubscribe: () => ({
    onSubscribeResult({ result, setResult }) {
      if (isAsyncIterable(result)) setResult(withoutRepeats(result));
    },
  }),
};

function withoutRepeats<Value>(values: AsyncIterable<Value>): AsyncIterableIterator<Value> {
  let last: string | undefined;
  return mapped(values, (value) => {
    const text = JSON.stringify(value);
    if (text === last) return undefined;
    last = text;
    return value;
  });
}

/**
 * What the function makes of each value, but for those of which it makes undefined. No generator, since the `return` of a
 * generator has to wait for a value that may never come.
 */
function mapped<Value>(
  values: AsyncIterable<Value>,
  map: (value: Value) => Value | undefined,
): AsyncIterableIterator<Value> {
  const iterator = values[Symbol.asyncIterator]();
  return {
    async next() {
      for (;;) {
        const step = await iterator.next();
        if (step.done) return step;
        const value = map(step.value);
        if (value !== undefined) return { done: false, value };
      }
    },
    return: async () => (await iterator.return?.()) ?? { done: true, value: undefined },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

/** Lets through the errors that are meant for clients, with their codes, and masks all others. */
const clientErrors: Plugin<YogaContext> = {
  onResultProcess({ result, setResult, serverContext }) {
    if ('errors' in result) setResult(forClient(result, passedIn(serverContext)));
  },
  onSubscribe: ({ args }) => ({
    onSubscribeResult({ result, setResult }) {
      const context = passedIn(args.contextValue);
      if (isAsyncIterable(result)) setResult(mapped(result, (event) => forClient(event, context)));
    },
  }),
};

function forClient(result: ExecutionResult, { report, outcome }: YogaContext): ExecutionResult {
  if (!result.errors) return result;
  const errors = result.errors.map((error) => {
    const { message, extensions } = errorForClient(error, report);
    outcome.errorCode ??= String(extensions?.code);
    // A syntax error has no nodes, but a place in the text.
    const { nodes = null, source = null, positions = null, path = null } = error;
    return new GraphQLError(message, { nodes, source, positions, path, extensions });
  });
  return { ...result, errors };
}

/** The server context is what the handler passed in, whatever its declared type. */
const passedIn = (serverContext: unknown) => serverContext as YogaContext;
