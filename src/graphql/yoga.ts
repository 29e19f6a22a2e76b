/** The GraphQL door: Yoga over the schema, with GraphiQL served from the package. */

import { readFileSync } from 'node:fs';
import { renderGraphiQL } from '@graphql-yoga/render-graphiql';
import { type DocumentNode, GraphQLError, Kind } from 'graphql';
import { createYoga, type Plugin } from 'graphql-yoga';
import type { Viewer } from '../auth/viewer.ts';
import type { Context } from '../context.ts';
import { clientError, codeOf, messages } from '../errors.ts';
import { schema } from '../schema/schema.ts';

export interface GraphqlOptions {
  createContext(viewer: Viewer): Context;
  /** Told of every error that is hidden from the client. */
  onError(error: unknown): void;
  /** The token that GraphiQL starts with: that of the demo account, where there is one. */
  demoToken: string | undefined;
}

interface ServerContext {
  viewer: Viewer | null;
}

export type GraphqlDoor = ReturnType<typeof createGraphqlDoor>;

const exampleQuery = readFileSync(new URL('examples.graphql', import.meta.url), 'utf8');

export function createGraphqlDoor({ createContext, onError, demoToken }: GraphqlOptions) {
  return createYoga<ServerContext, Partial<Context>>({
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
    renderGraphiQL,
    graphiql: {
      title: 'Dovetail',
      defaultQuery: exampleQuery,
      headers: JSON.stringify({ Authorization: `Bearer ${demoToken ?? 'YOUR_API_TOKEN'}` }, null, 2),
    },
    plugins: [viewersOnly, clientErrors(onError)],
  });
}

/** Asks for a token before anything but the schema's own description is read. */
const viewersOnly: Plugin<ServerContext> = {
  onParse:
    ({ context }) =>
    ({ result }) => {
      if (context.viewer || result instanceof Error) return;
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

/** Lets through the errors that are meant for clients, with their codes, and masks all others. */
function clientErrors(onError: (error: unknown) => void): Plugin {
  return {
    onResultProcess({ result, setResult }) {
      if (!('errors' in result) || !result.errors) return;
      setResult({ ...result, errors: result.errors.map((error) => forClient(error, onError)) });
    },
  };
}

function forClient(error: GraphQLError, onError: (error: unknown) => void): GraphQLError {
  if (codeOf(error)) return error;
  if (isAboutRequest(error)) return recoded(error, 'BAD_USER_INPUT', error.message);
  onError(error.originalError ?? error);
  return recoded(error, 'INTERNAL_SERVER_ERROR', messages.internal);
}

/**
 * Whether the request itself is at fault: its syntax, its fields, its variables or its arguments. GraphQL reports
 * these by errors of its own, some of which wrap others. Those without a path were found before a resolver ran;
 * those that were found later point at the argument in the document, which no error out of a resolver does.
 */
function isAboutRequest(error: GraphQLError): boolean {
  let cause: Error = error;
  while (cause instanceof GraphQLError && cause.originalError) cause = cause.originalError;
  return cause instanceof GraphQLError && (!error.path || cause.nodes !== undefined);
}

function recoded(error: GraphQLError, code: 'BAD_USER_INPUT' | 'INTERNAL_SERVER_ERROR', message: string) {
  const { nodes = null, path = null, extensions } = error;
  return new GraphQLError(message, {
    nodes,
    path,
    extensions: { code, ...(extensions.http !== undefined && { http: extensions.http }) },
  });
}
