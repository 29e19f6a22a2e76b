/** The work of a request, which an API prepares and the pipeline runs (`server/pipeline.ts`). */

import type { HttpResponse, StreamedResponse } from './response.ts';

/** A request that an API has read. */
export interface Task {
  /** A key that equal requests of a viewer share; undefined for requests whose response is never cached. */
  readonly cacheKey: string | undefined;
  /** Prepares the work, perhaps when it is the user's turn. Called if there is no cached response, and the request is not shed. */
  prepare(): Work | Promise<Work>;
  /** Makes another response of the task's, for a client that wants to know of changes. No deadline applies. */
  follow?: ((current: HttpResponse) => Promise<HttpResponse | StreamedResponse>) | undefined;
}

/** The prepared work of a request. */
export type Work = Query | OtherWork;

/** Work that only reads the viewer's data: equal queries may share a response. */
export interface Query {
  readonly kind: 'query';
  run(): Promise<Computed>;
}

export interface OtherWork {
  readonly kind: 'other';
  run(): Promise<HttpResponse | StreamedResponse>;
  /** Whether it may have changed data of the viewer once it has run. */
  readonly mayHaveWritten: boolean;
}

export interface Computed {
  readonly response: HttpResponse;
  /** Whether the response may be cached: errors may not. */
  readonly isCacheable: boolean;
}
