/**
 * GraphQL Yoga, which runs every operation of every transport. The gateway's rules are its plugins. The pipeline has authenticated and
 * counted a request before it comes here.
 */

import { createYoga, type Plugin } from 'graphql-yoga';
import type { Config } from '../config/config.ts';
import { clientErrorOf } from '../errors.ts';
import { type LiveReads, OperationFailed } from '../schema/liveReads.ts';
import type { RequestContext } from './context.ts';
import type { Documents } from './documents.ts';
import type { PersistedOperations } from './persisted.ts';
import { useLiveQueries } from './plugins/liveQueries.ts';
import {
  useComplexity,
  useDocuments,
  useErrorLog,
  usePreparedExecution,
  useScopes,
} from './plugins/operation.ts';
import { usePersistedOperations } from './plugins/persistedOperations.ts';
import { useStreams } from './plugins/streams.ts';

interface YogaOptions {
  readonly config: Config;
  readonly documents: Documents;
  readonly persisted: PersistedOperations;
  readonly live: LiveReads;
  /** Plugins of others, which come last: they see the operations that the gateway's rules allow, and their results. */
  readonly others: readonly Plugin[];
}

export type Yoga = ReturnType<typeof startYoga>;

export function startYoga({ config, documents, persisted, live, others }: YogaOptions) {
  return createYoga<RequestContext>({
    schema: documents.schema,
    // In this order, whatever transport an operation comes by.
    plugins: [
      usePersistedOperations(persisted),
      useDocuments(documents),
      useScopes(),
      useComplexity(config, documents),
      usePreparedExecution(),
      useLiveQueries(live, others.length > 0),
      useStreams(),
      useErrorLog(),
      ...others,
    ],
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
