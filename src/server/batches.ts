/** Runs requests that are inside another request: the operations of a batch, and the request of a tool call. */

import type { Viewer } from '../auth/viewer.ts';
import type { GraphqlHandler } from '../graphql/handler.ts';
import { failureResponse } from '../http/errorResponse.ts';
import type { Exchange } from '../http/exchange.ts';
import { type HttpResponse, isResponse, type StreamedResponse } from '../http/response.ts';
import type { BatchPart, Task } from '../http/task.ts';
import type { RestHandler } from '../rest/handler.ts';

/**
 * Responds to a task from the cache, or else runs it.
 * @param asked the exchange whose API has the task: another one than `exchange` within a tool call.
 */
export type RunTask = (
  exchange: Exchange,
  viewer: Viewer | null,
  task: Task,
  asked?: Pick<Exchange, 'endpoint'>,
) => HttpResponse | StreamedResponse | Promise<HttpResponse | StreamedResponse>;

/**
 * Runs the parts of a batch. A part that is in order (a mutation) runs alone, after all before it. The others run concurrently.
 * @param run runs a part as if it came alone.
 * @returns the responses in the order of the parts. A part that fails has an error response.
 */
export async function runBatch(
  exchange: Exchange,
  parts: readonly BatchPart[],
  run: (task: Task) => Promise<HttpResponse | StreamedResponse>,
): Promise<HttpResponse[]> {
  async function respond(task: Task | HttpResponse): Promise<HttpResponse> {
    if (isResponse(task)) return task;
    try {
      const response = await run(task);
      if ('stream' in response) throw new Error('a part of a batch cannot be a stream');
      return response;
    } catch (error) {
      return failureResponse(exchange, error);
    }
  }

  const responses: Promise<HttpResponse>[] = [];
  for (const { task, isInOrder } of parts) {
    if (isInOrder) await Promise.all(responses);
    const response = respond(task);
    if (isInOrder) await response;
    responses.push(response);
  }
  const all = await Promise.all(responses);
  // Some may come from the cache, and others not.
  exchange.cache = undefined;
  return all;
}

/**
 * Makes a function that runs the REST or GraphQL request of a tool call. The pipeline has already authorized the call, so the
 * request is looked up in the cache, shed and run as if it had come by itself.
 */
export const createInnerRunner =
  ({ graphql, rest }: { graphql: GraphqlHandler; rest: RestHandler }, runTask: RunTask) =>
  async (outer: Exchange, inner: Exchange, viewer: Viewer) => {
    const task = await (inner.endpoint === 'graphql' ? graphql : rest)(inner, viewer);
    if (isResponse(task)) return task;
    if ('join' in task) throw new Error('a tool makes no batches');
    return runTask(outer, viewer, task, inner);
  };
