/**
 * GraphQL Yoga, which runs every operation of every transport. The gateway's rules are its plugins (`plugins/plugins.ts`), and so is
 * what others add. The pipeline has authenticated and counted a request before it comes here.
 */

import type { GraphQLSchema } from 'graphql';
import { createYoga } from 'graphql-yoga';
import { clientErrorOf } from '../errors.ts';
import { OperationFailed } from '../schema/endings.ts';
import type { RequestContext } from './context.ts';
import { type PluginOptions, plugins } from './plugins/plugins.ts';

interface YogaOptions extends PluginOptions {
  readonly schema: GraphQLSchema;
}

export type Yoga = ReturnType<typeof startYoga>;

export function startYoga({ schema, ...options }: YogaOptions) {
  return createYoga<RequestContext>({
    schema,
    plugins: plugins(options),
    maskedErrors: {
      maskError: (error) => (error instanceof OperationFailed ? error : clientErrorOf(error)),
    },
    extraParamNames: ['documentId'],
    // The pipeline does these, and `documents.ts` caches within bounds.
    cors: false,
    graphiql: false,
    landingPage: false,
    logging: false,
    maxRequestBodySize: false,
    parserAndValidationCache: false,
    // No URL has a space, so there is no other health check than the gateway's.
    healthCheckEndpoint: ' ',
    // Those that Yoga would bring along do not end when their reader cancels them.
    fetchAPI: { Request, Response, ReadableStream, Headers },
  });
}
