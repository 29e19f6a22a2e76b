/** What an API makes of a request, for the pipeline to run: see `server/pipeline.ts`. */

import type { HttpResponse, StreamedResponse } from './response.ts';

/** A request that an API has read. */
export interface Task {
  /** What equal requests of a viewer have in common; undefined for those whose response is never cached. */
  readonly cacheKey: string | undefined;
  /** Finds out what is asked for. Called when there is no cached response, and the load allows. */
  prepare(): Work;
}

/** A request of several parts, each of them a request of its own. */
export interface Batch {
  /** How many requests it counts as. */
  readonly size: number;
  /** Finds out what is asked for, or why nothing of it is done. Called when the limits and the load allow. */
  prepare(): readonly BatchPart[] | HttpResponse;
  /** The response to all, of those to the parts in their order. */
  join(responses: readonly HttpResponse[]): HttpResponse;
}

export interface BatchPart {
  /** Whether it has to be done after all parts before it, and before all behind it. */
  readonly isInOrder: boolean;
  /** What is to be done, or the response to what cannot be. */
  readonly task: Task | HttpResponse;
}

/** What a request asks for. */
export type Work = Query | OtherWork;

/** A read of the viewer's data alone: equal ones may share a response. */
export interface Query {
  readonly kind: 'query';
  run(): Promise<Computed>;
}

export interface OtherWork {
  readonly kind: 'other';
  run(): Promise<HttpResponse | StreamedResponse>;
  /** Whether it may have changed data of the viewer's: known once `run` has settled. */
  mayHaveWritten(): boolean;
}

export interface Computed {
  readonly response: HttpResponse;
  /** Whether the response may be cached: errors may not. */
  readonly isCacheable: boolean;
}
