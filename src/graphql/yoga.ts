/** Yoga over the schema: all of GraphQL over HTTP, and GraphiQL served from the package. */

import { readFileSync } from 'node:fs';
import { type DocumentNode, GraphQLError, getOperationAST, Kind, type OperationTypeNode } from 'graphql';
import { createYoga, isAsyncIterable, type Plugin } from 'graphql-yoga';
import type { Viewer } from '../auth/viewer.ts';
import type { Context } from '../context.ts';
import { clientError, errorForClient, messages } from '../errors.ts';
import { labelOf } from '../schema/prepare.ts';
import { schema } from '../schema/schema.ts';

export interface YogaOptions {
  createContext(viewer: Viewer): Context;
  /** The token that GraphiQL starts with: that of the demo account, where there is one. */
  demoToken: string | undefined;
}

/** What is known of a request before Yoga sees it, and what it turned out to be. */
export interface YogaContext {
  readonly viewer: Viewer | null;
  readonly outcome: { type?: OperationTypeNode; label?: string; failed: boolean };
  /** Told of every error that is hidden from the client. */
  report(error: unknown): void;
}

const exampleQuery = readFileSync(new URL('examples.graphql', import.meta.url), 'utf8');

export function createGraphqlYoga({ createContext, demoToken }: YogaOptions) {
  return createYoga<YogaContext, Partial<Context>>({
    schema,
    graphqlEndpoint: '/graphql',
    landingPage: false,
    cors: false,
    batching: false,
    multipart: false,
    logging: false,
    // `clientErrors` below says what a client may see.
    maskedErrors: false,
    context: ({ viewer }) => (viewer ? createContext(viewer) : {}),
    // The page is a string of many megabytes, which nobody may ever ask for.
    renderGraphiQL: async (options) =>
      (await import('@graphql-yoga/render-graphiql')).renderGraphiQL(options),
    graphiql: {
      title: 'Dovetail',
      defaultQuery: exampleQuery,
      headers: JSON.stringify({ Authorization: `Bearer ${demoToken ?? 'YOUR_API_TOKEN'}` }, null, 2),
    },
    plugins: [readable, viewersOnly, outcomes, changesOnly, clientErrors],
  });
}

/** Answers 400 to a request that cannot be read: Yoga takes some of these for errors of its own. */
const readable: Plugin = {
  onRequestParse({ requestParser, setRequestParser }) {
    if (!requestParser) return;
    setRequestParser(async (request) => {
      try {
        return await requestParser(request);
      } catch (error) {
        const message = error instanceof GraphQLError ? error.message : messages.parametersNotJson;
        throw new GraphQLError(message, { extensions: { code: 'BAD_USER_INPUT', http: { status: 400 } } });
      }
    });
  },
};

/** Asks for a token before anything but the schema's own description is read. */
const viewersOnly: Plugin<YogaContext> = {
  onParse:
    ({ context }) =>
    ({ result }) => {
      if (context.viewer || result instanceof Error) return;
      // Yoga parses with graphql-js, whose result this is.
      if (!isIntrospection(result as DocumentNode))
        throw clientError('UNAUTHENTICATED', messages.unauthorized);
    },
};

/** Whether a document asks for nothing but the schema. Fragments are only reached from the operations. */
function isIntrospection(document: DocumentNode): boolean {
  return document.definitions.every(
    (definition) =>
      definition.kind === Kind.FRAGMENT_DEFINITION ||
      (definition.kind === Kind.OPERATION_DEFINITION &&
        definition.selectionSet.selections.every(
          (selection) => selection.kind === Kind.FIELD && selection.name.value.startsWith('__'),
        )),
  );
}

/** Notes what the request turned out to be, for the door to know whether it wrote and whether it may be kept. */
const outcomes: Plugin<YogaContext> = {
  onExecute({ args, context }) {
    const operation = getOperationAST(args.document, args.operationName);
    if (!operation) return;
    context.outcome.type = operation.operation;
    context.outcome.label = labelOf(operation);
  },
  onResultProcess({ result, serverContext }) {
    const { outcome } = passedIn(serverContext);
    if (!('data' in result) || ('errors' in result && result.errors)) outcome.failed = true;
  },
};

/** Spares subscribers what they have already: many changes do not touch what they selected. */
const changesOnly: Plugin = {
  onSubscribe: () => ({
    onSubscribeResult({ result, setResult }) {
      if (isAsyncIterable(result)) setResult(withoutRepeats(result));
    },
  }),
};

/** Not a generator function, since the `return` of a generator has to wait for a value that may never come. */
function withoutRepeats<Value>(values: AsyncIterable<Value>): AsyncIterableIterator<Value> {
  const iterator = values[Symbol.asyncIterator]();
  let last: string | undefined;
  return {
    async next() {
      for (;;) {
        const step = await iterator.next();
        const text = JSON.stringify(step.value);
        if (step.done || text !== last) {
          last = text;
          return step;
        }
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
    if (!('errors' in result) || !result.errors) return;
    const errors = result.errors.map((error) => {
      const { message, extensions } = errorForClient(error, passedIn(serverContext).report);
      return new GraphQLError(message, {
        nodes: error.nodes ?? null,
        path: error.path ?? null,
        extensions,
      });
    });
    setResult({ ...result, errors });
  },
};

/** The server context is what the door passed in, whatever its declared type. */
const passedIn = (serverContext: unknown) => serverContext as YogaContext;
