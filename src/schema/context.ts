/** The context of an operation, which its resolvers share. */

import type pg from 'pg';
import type { Viewer } from '../auth/viewer.ts';
import type { Sql } from '../database/reader/sql.ts';
import { createLoaders, type Loaders } from './loading/loaders.ts';

/** The models whose details an upstream's lists leave out (`loading/details.ts`). */
export type DetailedModel = 'DttSession' | 'DttTemplate';

/** The upstream account of a viewer, for a gateway that mirrors it. */
export interface UpstreamAccount {
  /**
   * Activates a template upstream and then here.
   * @param activateHere is called once the template is active upstream.
   * @returns the result of `activateHere`, and whether the schedule type has changed or may have; undefined for a viewer whose
   * account is not mirrored.
   * @throws a client error if the upstream rejects the activation, cannot be reached or sends an unusable response.
   */
  activate<Here>(
    viewer: Viewer,
    templateId: number,
    activateHere: () => Promise<Here>,
  ): Promise<{ here: Here; scheduleTypeChanged: boolean } | undefined>;
  /**
   * Fetches pending details of records that the viewer may see, and stores them.
   * @throws SERVICE_UNAVAILABLE, with `retryAfter`, if not all of them can be fetched now.
   */
  fetchDetails(viewer: Viewer, model: DetailedModel, ids: readonly number[]): Promise<void>;
}

/** Runs a transaction that changes tokens of the viewer. Fails if the viewer's own has ended. Once it has ended, this process looks all of them up again. */
export type ChangeTokens = <Result>(run: (client: pg.PoolClient) => Promise<Result>) => Promise<Result>;

/** Each operation has a context of its own, since its loaders cache rows. */
export interface Context {
  readonly viewer: Viewer;
  readonly sql: Sql;
  readonly loaders: Loaders;
  readonly upstream: UpstreamAccount | undefined;
  readonly changeTokens: ChangeTokens;
}

/** @param changeTokens by default, tokens cannot be changed. */
export function createContext(
  sql: Sql,
  viewer: Viewer,
  upstream: UpstreamAccount | undefined,
  changeTokens: ChangeTokens = () => Promise.reject(new Error('tokens cannot be changed here')),
): Context {
  return { viewer, sql, loaders: createLoaders(), upstream, changeTokens };
}
