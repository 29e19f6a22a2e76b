/** Running what a request asks for: out of the cache, or through it, or past it. */

import type { Viewer } from '../auth/viewer.ts';
import type { Exchange } from '../http/exchange.ts';
import type { HttpResponse, StreamedResponse } from '../http/response.ts';
import type { ResponseCache } from '../http/responseCache.ts';
import type { OtherWork, Task, Work } from '../http/task.ts';
import type { Positions } from './positions.ts';
import { type Shed, tooBusy } from './shedding.ts';

export interface TaskRunnerOptions {
  readonly responseCache: ResponseCache;
  readonly shed: Shed;
  /** Told of a viewer who may have written something. */
  readonly onChanged: (viewerId: number) => void;
  readonly positions: Positions | undefined;
}

/** @param asked has the API that the task is of, where the exchange is a request to another one. */
export type TaskRunner = (
  exchange: Exchange,
  viewer: Viewer | null,
  task: Task,
  asked?: Pick<Exchange, 'endpoint'>,
) => HttpResponse | StreamedResponse | Promise<HttpResponse | StreamedResponse>;

/**
 * Runs a task, unless there is a cached response: those are sent however much waits.
 */
export function createTaskRunner({
  responseCache,
  shed,
  onChanged,
  positions,
}: TaskRunnerOptions): TaskRunner {
  const cache = { compute: responseCache.compute, invalidate: onChanged, noteRead: responseCache.noteRead };

  async function tellAfter(running: ReturnType<typeof runWork>, exchange: Exchange, work: OtherWork) {
    const response = await running;
    if (work.mayHaveWritten()) await positions?.addTo(exchange, response);
    return response;
  }

  return (exchange, viewer, task, asked = exchange) => {
    // The keys of the two APIs are nothing to each other.
    const cacheKey = task.cacheKey === undefined ? undefined : `${asked.endpoint} ${task.cacheKey}`;
    const run = () => {
      const work = task.prepare();
      if (viewer && cacheKey !== undefined && work.kind === 'query') exchange.cache = 'miss';
      const running = runWork(work, { viewer, cacheKey }, cache);
      return positions && viewer && work.kind === 'other' ? tellAfter(running, exchange, work) : running;
    };
    const respond = (cached: HttpResponse | undefined) => {
      exchange.cache = cached && 'hit';
      if (cached) return cached;
      return shed(exchange, viewer) ? tooBusy(asked) : run();
    };
    const cached = viewer && cacheKey !== undefined ? responseCache.get(viewer.id, cacheKey) : undefined;
    return cached instanceof Promise ? cached.then(respond) : respond(cached);
  };
}

/** Runs what a request asks for: a query through the cache, and anything else past it. */
export async function runWork(
  work: Work,
  { viewer, cacheKey }: { viewer: Viewer | null; cacheKey: string | undefined },
  cache: Pick<ResponseCache, 'compute' | 'invalidate' | 'noteRead'>,
): Promise<HttpResponse | StreamedResponse> {
  if (work.kind === 'query') {
    const response =
      viewer && cacheKey !== undefined
        ? await cache.compute(viewer.id, cacheKey, work.run)
        : (await work.run()).response;
    if (viewer && cacheKey === undefined) cache.noteRead(viewer.id);
    return response;
  }
  try {
    return await work.run();
  } finally {
    // Also after a failure: a commit whose acknowledgement was lost has changed something all the same.
    if (viewer && work.mayHaveWritten()) cache.invalidate(viewer.id);
    else if (viewer) cache.noteRead(viewer.id);
  }
}
