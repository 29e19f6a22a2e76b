/** Runs what requests ask for: out of the response cache, through it, or past it; the parts of a batch; requests of tools. */

import type { Viewer } from '../auth/viewer.ts';
import type { GraphqlHandler } from '../graphql/handler.ts';
import { failureResponse } from '../http/errorResponse.ts';
import type { Exchange } from '../http/exchange.ts';
import { type HttpResponse, isResponse, type StreamedResponse } from '../http/response.ts';
import type { ResponseCache } from '../http/responseCache.ts';
import type { BatchPart, OtherWork, Query, Task } from '../http/task.ts';
import type { RestHandler } from '../rest/handler.ts';
import { type Shed, tooBusy } from './access.ts';
import type { Positions } from './positions.ts';

/** @param asked has the API that the task is of, where the exchange is a request to another one. */
export type TaskRunner = (
  exchange: Exchange,
  viewer: Viewer | null,
  task: Task,
  asked?: Pick<Exchange, 'endpoint'>,
) => HttpResponse | StreamedResponse | Promise<HttpResponse | StreamedResponse>;

/** Makes a function that runs a task, unless there is a cached response: that is sent however many requests wait. */
export function createTaskRunner({
  responseCache,
  shed,
  onChanged,
  positions,
}: {
  readonly responseCache: ResponseCache;
  readonly shed: Shed;
  /** Called with a viewer who may have written something. */
  readonly onChanged: (viewerId: number) => void;
  readonly positions: Positions | undefined;
}): TaskRunner {
  async function runQuery({ run }: Query, exchange: Exchange, viewer: Viewer | null, key?: string) {
    if (viewer && key !== undefined) {
      exchange.cache = 'miss';
      return responseCache.compute(viewer.id, key, run);
    }
    const { response } = await run();
    if (viewer) responseCache.noteRead(viewer.id);
    return response;
  }

  async function runOther(work: OtherWork, exchange: Exchange, viewer: Viewer) {
    const running = work.run().finally(() => {
      // Also after a failure: a commit whose acknowledgement was lost has changed something all the same.
      if (work.mayHaveWritten()) onChanged(viewer.id);
      else responseCache.noteRead(viewer.id);
    });
    const response = await running;
    if (work.mayHaveWritten()) await positions?.addTo(exchange, response);
    return response;
  }

  return (exchange, viewer, task, asked = exchange) => {
    // Both APIs may have the same keys.
    const key = viewer && task.cacheKey !== undefined ? `${asked.endpoint} ${task.cacheKey}` : undefined;
    const respond = (cached: HttpResponse | undefined) => {
      exchange.cache = cached && 'hit';
      if (cached) return cached;
      if (shed(exchange, viewer)) return tooBusy(asked);
      const work = task.prepare();
      if (work.kind === 'query') return runQuery(work, exchange, viewer, key);
      return viewer ? runOther(work, exchange, viewer) : work.run();
    };
    const cached = viewer && key !== undefined ? responseCache.get(viewer.id, key) : undefined;
    return cached instanceof Promise ? cached.then(respond) : respond(cached);
  };
}

/**
 * Runs the parts of a batch: those that have to be in order one after the other, and the others beside each other.
 * @param run what runs a part as if it were alone.
 * @returns the responses in the order of the parts. One that fails has an error in its place.
 */
export async function runBatch(
  exchange: Exchange,
  parts: readonly BatchPart[],
  run: (task: Task) => Promise<HttpResponse | StreamedResponse>,
): Promise<HttpResponse[]> {
  // Each part waits for the client to leave.
  exchange.response.setMaxListeners(exchange.response.getMaxListeners() + parts.length);

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
  // Some may have come from the cache and others not.
  exchange.cache = undefined;
  return all;
}

/**
 * Makes a function that runs the REST or GraphQL request of a tool call. The pipeline has already authorized the call, so the
 * request is looked up in the cache, shed and run as if it had come by itself.
 */
export const createInnerRunner =
  ({ graphql, rest }: { graphql: GraphqlHandler; rest: RestHandler }, runTask: TaskRunner) =>
  async (outer: Exchange, inner: Exchange, viewer: Viewer) => {
    const task = await (inner.endpoint === 'graphql' ? graphql : rest)(inner, viewer);
    if (isResponse(task)) return task;
    if ('join' in task) throw new Error('a tool makes no batches');
    return runTask(outer, viewer, task, inner);
  };
