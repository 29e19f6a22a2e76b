/** Fetches details that a client reads before the background run has read them, as far as the account's budget allows. */

import pMap from 'p-map';
import type pg from 'pg';
import type { Logger } from 'pino';
import type { Viewer } from '../auth/viewer.ts';
import { detailsNotHere } from '../errors.ts';
import type { UpstreamAccount } from '../schema/context.ts';
import type { Budget } from '../upstream/budget.ts';
import { type Upstream, UpstreamBusy, UpstreamError } from '../upstream/upstream.ts';
import { fetchDetails } from './details.ts';
import { kindsOf } from './kinds.ts';
import { concurrency } from './list.ts';

export interface DetailsOnDemandOptions {
  readonly pool: pg.Pool;
  readonly logger: Logger;
  /** The upstream client and the budget of a viewer's account; undefined if no token can be used there. */
  accountOf(viewer: Viewer): Promise<{ upstream: Upstream | undefined; budget: Budget } | undefined>;
}

/** Requests that the budget does not allow now are left out: a client that asks again finds the others here. */
export function createDetailsOnDemand({
  pool,
  logger,
  accountOf,
}: DetailsOnDemandOptions): UpstreamAccount['fetchDetails'] {
  /** The records that are being fetched. There is one map for all requests, so that no two of them fetch the same record. */
  const underWay = new Map<string, Promise<unknown>>();
  return async (viewer, model, ids) => {
    const found = await accountOf(viewer);
    if (!found?.upstream) throw detailsNotHere(ids.length);
    const { upstream, budget } = found;
    const affordable = ids.slice(0, budget.available());
    const left = ids.length - affordable.length;
    try {
      const { dttTemplates, dttSessions } = kindsOf(viewer.id);
      const kind = model === 'DttTemplate' ? dttTemplates : dttSessions;
      const options = { pool, upstream, accountId: viewer.id };
      const fetch = (id: number) => {
        // Two accounts that see the same template send different tokens.
        const key = `${viewer.id} ${model} ${id}`;
        const fetching =
          underWay.get(key) ?? fetchDetails(options, kind, id).finally(() => underWay.delete(key));
        underWay.set(key, fetching);
        return fetching;
      };
      await pMap(affordable, fetch, { concurrency });
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error;
      logger.warn(error.failure, 'details not fetched');
      throw detailsNotHere(ids.length, error instanceof UpstreamBusy ? error.retryAfter : undefined);
    }
    if (left > 0) throw detailsNotHere(left, budget.delayFor(left) / 1_000);
  };
}
