/** Requests that other requests stand for, such as the call of a tool for that of its route. */

import type { Viewer } from '../auth/viewer.ts';
import type { GraphqlHandler } from '../graphql/handler.ts';
import type { Exchange } from '../http/exchange.ts';
import { isResponse } from '../http/response.ts';
import type { RestHandler } from '../rest/handler.ts';
import type { TaskRunner } from './taskRunner.ts';

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
    if (isResponse(task)) return task;
    if ('join' in task) throw new Error('a batch is no request that another one stands for');
    return runTask(outer, viewer, task, inner);
  };
}
