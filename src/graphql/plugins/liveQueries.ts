/**
 * Runs subscriptions: the operation is executed again after each change of the viewer's data (`schema/liveReads.ts`). Yoga's plugin for
 * live queries is told what has changed by code that writes; here any program that writes to the database is heard of.
 */

import { type ExecutionResult, type FormattedExecutionResult, GraphQLError } from 'graphql';
import { mapAsyncIterator, type YogaServer } from 'graphql-yoga';
import { exactText } from '../../http/json.ts';
import type { HttpResponse } from '../../http/response.ts';
import type { Context } from '../../schema/context.ts';
import type { LiveReads } from '../../schema/liveReads.ts';
import type { GatewayContext, GatewayPlugin } from '../context.ts';
import { jsonType, notAcceptable, responseOf, withText } from '../overHttp.ts';
import { noteErrors } from './operation.ts';

/** @param areResultsRead whether other plugins read the results, and not only their texts. */
export function useLiveQueries(live: LiveReads, areResultsRead: boolean): GatewayPlugin {
  let getEnveloped: YogaServer<object, object>['getEnveloped'] | undefined;

  async function execute(given: GatewayContext, own: Context) {
    if (!getEnveloped) throw new Error('Yoga has not begun');
    const { params, progress } = given;
    const { schema, contextFactory, execute } = getEnveloped({ ...given, ...own });
    const { document, variables } = progress;
    const result: ExecutionResult = await execute({
      schema,
      document: document?.document,
      contextValue: await contextFactory(),
      variableValues: variables,
      operationName: params.operationName,
    });
    noteErrors(result, given);
    return { response: responseOf(result, jsonType), isCacheable: !result.errors };
  }

  /** The results; undefined if the user has too many subscriptions. */
  function follow(context: GatewayContext): AsyncIterableIterator<ExecutionResult> | undefined {
    const { exchange, viewer, progress, params } = context;
    const key = progress.operation?.readsTokens(params.variables)
      ? undefined
      : `live ${exactText([params.query, params.operationName, params.variables])}`;
    const read = (own: Context) => execute(context, own);
    const responses = live.follow({ exchange, viewer, key, read, judge });
    if (!responses) return undefined;
    progress.end = responses.return;
    return mapAsyncIterator(responses, ({ body }) => {
      const text = body.toString();
      // Only another plugin reads more of a result than its text.
      return withText(areResultsRead ? JSON.parse(text) : {}, text);
    });
  }

  return {
    onYogaInit({ yoga }) {
      getEnveloped = yoga.getEnveloped;
    },

    onSubscribe({ context, setSubscribeFn, setResultAndStopExecution }) {
      const { exchange, accepted } = context;
      if (exchange.transport === undefined && !accepted.stream)
        return setResultAndStopExecution({ errors: [noStream] });
      // A plugin of others may still refuse the subscription: it counts once it begins.
      setSubscribeFn(() => follow(context) ?? { errors: [tooMany(live.tooMany)] });
    },
  };
}

const noStream = new GraphQLError(notAcceptable, {
  extensions: { code: 'BAD_USER_INPUT', http: { status: 406 } },
});

const tooMany = (message: string) =>
  new GraphQLError(message, {
    extensions: {
      code: 'TOO_MANY_REQUESTS',
      retryAfter: 1,
      http: { status: 429, headers: { 'Retry-After': '1' } },
    },
  });

/** Judges a result by its errors: one that says that the request is wrong would come again each time. */
export function judge({ body, errorCode }: HttpResponse) {
  const { errors = [] }: FormattedExecutionResult =
    errorCode === undefined ? {} : JSON.parse(body.toString());
  const codes = errors.map(({ extensions }) => extensions?.code);
  return {
    hasFailed: codes.includes('INTERNAL_SERVER_ERROR') || codes.includes('SERVICE_UNAVAILABLE'),
    isLast: codes.includes('BAD_USER_INPUT'),
  };
}
