/** Requests that other requests stand for, such as the call of a tool for that of its route. */

import type { Viewer } from '../auth/viewer.ts';
import type { GraphqlHandler } from '../graphql/handler.ts';
import { fail } from '../http/errorResponse.ts';
import type { Exchange } from '../http/exchange.ts';
import type { HttpResponse, StreamedResponse } from '../http/response.ts';
import type { Task } from '../http/task.ts';
import type { RestHandler } from '../rest/handler.ts';

type Response = HttpResponse | StreamedResponse;

/** Runs a task of an exchange, for which it is asked of an API as another one says, if that is given. */
export type TaskRunner = (
  exchange: Exchange,
  viewer: Viewer | null,
  task: Task,
  asked?: Pick<Exchange, 'endpoint'>,
) => Response | Promise<Response>;

/** The response, also where there is none but an error. */
export async function outcomeOf(exchange: Exchange, run: () => ReturnType<TaskRunner>): Promise<Response> {
  try {
    return await run();
  } catch (error) {
    exchange.report(error);
    return fail(exchange, 'internal');
  }
}

interface InnerRunnerOptions {
  readonly graphql: GraphqlHandler;
  readonly rest: RestHandler;
  readonly runTask: TaskRunner;
}

/**
 * Runs requests that other requests stand for. What the pipeline does before it comes to such a request it has done for the
 * other one: it is looked up in the cache, shed and run as if it had come by itself.
 */
export function createInnerRunner({ graphql, rest, runTask }: InnerRunnerOptions) {
  return async (outer: Exchange, inner: Exchange, viewer: Viewer) => {
    const task = await (inner.endpoint === 'graphql' ? graphql : rest)(inner, viewer);
    if ('status' in task) return task;
    if ('join' in task) throw new Error('a batch is no request that another one stands for');
    return runTask(outer, viewer, task, inner);
  };
}
