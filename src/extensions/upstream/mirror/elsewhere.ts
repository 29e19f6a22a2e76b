/** What resolvers need the upstream for: reads of details, and activations, which happen first upstream and then in the mirror. */

import type { GraphQLError } from 'graphql';
import type pg from 'pg';
import { z } from 'zod';
import type { Viewer } from '../../../auth/viewer.ts';
import type { RunInTurn } from '../../../database/turns.ts';
import { clientError, messages } from '../../../errors.ts';
import type { AccountElsewhere } from '../../../schema/context.ts';
import type { Budget } from '../client/budget.ts';
import { isMissing, Unavailable, type Upstream, UpstreamBusy, UpstreamError } from '../client/upstream.ts';
import { messages as upstreamMessages } from '../messages.ts';
import { completeReads, detailModels } from './completeReads.ts';
import { createDetailsOnDemand, type DetailsOnDemandOptions } from './details.ts';

/** The longest that an activation takes, in milliseconds. The account may have to be read first. */
export const longestActivation = 50_000;

/** The body of a success. It may leave out whether the type changed. */
const activated = z
  .object({ scheduleTypeChanged: z.boolean().nullable() })
  .catch({ scheduleTypeChanged: null });

export interface ElsewhereOptions extends DetailsOnDemandOptions {
  /** @returns also `refresh`, which reads the account again, and returns whether that succeeded soon. */
  accountOf(
    viewer: Viewer,
    guard?: RunInTurn,
  ): Promise<
    { upstream: Upstream | undefined; budget: Budget; refresh(): Promise<boolean | undefined> } | undefined
  >;
  /** Called if the upstream may have activated a template of the viewer's account. */
  onActivated(viewer: Viewer): Promise<unknown>;
  /** The error if no token can be used: no client has sent one, or the upstream rejects that of the settings. */
  readonly unreachable: GraphQLError;
}

export function createElsewhere(options: ElsewhereOptions): AccountElsewhere {
  const fetchDetails = createDetailsOnDemand(options);
  return {
    activate: createActivation(options),
    incomplete: detailModels,
    wrapSql: (viewer, sql, watch) => completeReads(viewer, sql, watch, fetchDetails),
  };
}

/**
 * Other activations may run at the same time, in any gateway. So the templates are read again after each, before GraphQL shows
 * them. Then the mirror and the upstream have the same active template.
 */
function createActivation(options: ElsewhereOptions): AccountElsewhere['activate'] {
  const { pool, logger, accountOf, onActivated, unreachable } = options;
  return async (viewer, templateId, activateHere, guard) => {
    const found = await accountOf(viewer, guard);
    if (!found) return undefined;
    if (!found.upstream) throw unreachable;
    // The template may be newer than the last refresh.
    if (!(await isOwn(pool, templateId, viewer.id))) {
      if (!(await found.refresh())) throw clientError('BAD_GATEWAY', upstreamMessages.upstreamAway);
      if (!(await isOwn(pool, templateId, viewer.id))) throw notOwned();
    }
    const scheduleTypeChanged = await activateThere(found.upstream, viewer, templateId);
    try {
      return { here: await activateHere(), scheduleTypeChanged };
    } finally {
      await onActivated(viewer);
    }
  };

  /** Activates upstream. Returns whether the schedule type has changed, null if that is not known. */
  async function activateThere(
    upstream: Upstream,
    viewer: Viewer,
    templateId: number,
  ): Promise<boolean | null> {
    try {
      const response = await upstream.post(`/dtt/templates/${templateId}`, { isActive: true });
      return activated.parse(response).scheduleTypeChanged;
    } catch (error) {
      if (error instanceof UpstreamError && error.mayHaveActed) await onActivated(viewer);
      if (isMissing(error)) throw notOwned();
      if (error instanceof UpstreamBusy) {
        const { retryAfter } = error;
        throw clientError('SERVICE_UNAVAILABLE', upstreamMessages.upstreamBusy, { retryAfter });
      }
      if (!(error instanceof UpstreamError)) throw error;
      logger.warn(error.failure, 'activation failed');
      const { upstreamAway, upstreamUnusable } = upstreamMessages;
      throw clientError('BAD_GATEWAY', error instanceof Unavailable ? upstreamAway : upstreamUnusable);
    }
  }
}

/** Whether the template is here as one of the account's own: no other can be activated. */
async function isOwn(pool: pg.Pool, templateId: number, accountId: number): Promise<boolean> {
  const { rowCount } = await pool.query('SELECT FROM "DttTemplate" WHERE id = $1 AND "ownerId" = $2', [
    templateId,
    accountId,
  ]);
  return rowCount === 1;
}

const notOwned = () => clientError('NOT_FOUND', messages.templateNotOwned);
