/** What a resolver gets to work with: the viewer, and the data seen through the viewer's eyes. */

import type { Viewer } from '../auth/viewer.ts';
import type { Sql } from '../database/reader/sql.ts';
import { createLoaders, type Loaders } from './loading/loaders.ts';

/** The models of which an upstream's lists leave out a part (`loading/details.ts`). */
export type DetailedModel = 'DttSession' | 'DttTemplate';

/** Where the viewer's account lives, for a gateway that mirrors it. */
export interface UpstreamAccount {
  /**
   * Activates a template there and then here, before any other is; undefined for a viewer whose account lives here.
   * @param activateHere is called once it is active there.
   * @returns what that gave, and whether the schedule type has changed, or may have.
   * @throws a client error when the upstream rejects it, cannot be reached or cannot be used.
   */
  activate<Here>(
    viewer: Viewer,
    templateId: number,
    activateHere: () => Promise<Here>,
  ): Promise<{ here: Here; scheduleTypeChanged: boolean } | undefined>;
  /**
   * Brings here the details of records that the viewer can read, and of which only lists were read so far.
   * @throws SERVICE_UNAVAILABLE, with `retryAfter`, when not all of them can be had now.
   */
  fetchDetails(viewer: Viewer, model: DetailedModel, ids: readonly number[]): Promise<void>;
}

/** One per operation, since its loaders remember rows. */
export interface Context {
  readonly viewer: Viewer;
  readonly sql: Sql;
  readonly loaders: Loaders;
  readonly upstream: UpstreamAccount | undefined;
}

export function createContext(sql: Sql, viewer: Viewer, upstream: UpstreamAccount | undefined): Context {
  return { viewer, sql, loaders: createLoaders(), upstream };
}
