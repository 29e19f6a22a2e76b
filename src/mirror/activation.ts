/** Activation of a template of a mirrored account: first where the account lives, then in the mirror. */

import type { GraphQLError } from 'graphql';
import type pg from 'pg';
import type { Logger } from 'pino';
import { z } from 'zod';
import type { Viewer } from '../auth/viewer.ts';
import { clientError, messages } from '../errors.ts';
import type { UpstreamAccount } from '../schema/context.ts';
import { longestWait, type WithActivationLock } from './activationLock.ts';
import { kindsOf } from './kinds/kinds.ts';
import {
  Exhausted,
  incomprehensible,
  isMissing,
  routeOf,
  type Timing,
  Unavailable,
  type Upstream,
  UpstreamError,
} from './upstream.ts';
import { readVersions } from './versions.ts';
import { transactionOn, writeRecords } from './writer.ts';

/** A client is waiting: there is one repetition, and no long pause. */
export const activationTiming: Partial<Timing> = { timeout: 10_000, retries: 1, longestPause: 1_000 };

/** The longest that an activation takes, in milliseconds. A template may have to be read first. */
export const longestActivation = longestWait + 50_000;

/** A success that does not say whether the type changed is a success all the same. */
const activated = z.object({ scheduleTypeChanged: z.boolean() }).catch({ scheduleTypeChanged: false });

export interface ActivationOptions {
  readonly pool: pg.Pool;
  readonly logger: Logger;
  /** A client of the upstream for what a viewer asks, of which nothing else makes use; undefined if nobody can ask there. */
  upstreamFor(
    viewer: Viewer,
  ): Promise<{ upstream: Upstream | undefined; inTurn: WithActivationLock } | undefined>;
  /** Told of a viewer of whose account the upstream may have activated a template, without having said so. */
  onUncertain(viewer: Viewer): Promise<unknown>;
  /** Why nobody can ask there: clients bring no token, or that of the settings is not accepted. */
  readonly unreachable: GraphQLError;
}

export function createActivation({
  pool,
  logger,
  upstreamFor,
  onUncertain,
  unreachable,
}: ActivationOptions): UpstreamAccount['activate'] {
  return async (viewer, templateId, activateHere) => {
    const found = await upstreamFor(viewer);
    if (!found) return undefined;
    if (templateId < 1) throw notOwned();
    const { upstream, inTurn } = found;
    if (!upstream) throw unreachable;
    return inTurn(async () => {
      const scheduleTypeChanged = await activateThere(upstream, viewer, templateId);
      return { here: await activateHere(), scheduleTypeChanged };
    });
  };

  /** Returns whether the schedule type has changed, or may have. */
  async function activateThere(upstream: Upstream, viewer: Viewer, templateId: number): Promise<boolean> {
    const accountId = viewer.id;
    try {
      // The account can only point at a template that is here, and this one may be newer than the last refresh.
      if (!(await isKnown(pool, templateId, accountId)))
        await fetchTemplate(pool, upstream, templateId, accountId);
      // Nobody else uses this client meanwhile.
      const before = upstream.requestCount();
      const response = await upstream
        .post(`/dtt/templates/${templateId}`, { isActive: true })
        .catch(async (error: unknown) => {
          if (error instanceof UpstreamError && error.mayHaveActed) await onUncertain(viewer);
          throw error;
        });
      const { scheduleTypeChanged } = activated.parse(response);
      const isRepeated = upstream.requestCount() - before > 1;
      // That the last request changed nothing says nothing of one before it, whose response was lost. The interface has no
      // third answer, and whoever is told that the type changed in vain looks once too often.
      return scheduleTypeChanged || isRepeated;
    } catch (error) {
      if (isMissing(error)) throw notOwned();
      if (error instanceof Exhausted) {
        const { retryAfter } = error;
        throw clientError('SERVICE_UNAVAILABLE', messages.upstreamBusy, { retryAfter });
      }
      if (!(error instanceof UpstreamError)) throw error;
      logger.warn(error.failure, 'activation failed');
      const away = error instanceof Unavailable;
      throw clientError('BAD_GATEWAY', away ? messages.upstreamAway : messages.upstreamUnusable);
    }
  }
}

/** Brings a template of the account's own into the mirror. */
async function fetchTemplate(
  pool: pg.Pool,
  upstream: Upstream,
  templateId: number,
  accountId: number,
): Promise<void> {
  const kind = kindsOf(accountId).dttTemplates;
  const path = `${kind.item}${templateId}`;
  const failure = { failure: incomprehensible, method: 'GET', route: routeOf(path) };
  // A run may read a newer version meanwhile.
  const asked = await readVersions(pool, kind, [templateId]);
  const { data: record } = kind.record.safeParse(await upstream.get(path));
  if (record?.row.id !== templateId) throw new UpstreamError(`GET ${path}: not valid`, failure);
  // Also where the token has come to mean its owner's account: it is none of this one's.
  if (record.row.ownerId !== accountId) throw notOwned();
  const onRejected = (_record: unknown, reason: string) => {
    throw new UpstreamError(`${path}: ${reason}`, failure);
  };
  await writeRecords(transactionOn(pool), { kind, records: [record], accountId, onRejected, asked });
}

/** Whether the template is here as the account's own, which alone can be activated, and the response can tell all of it. */
async function isKnown(pool: pg.Pool, templateId: number, accountId: number): Promise<boolean> {
  const { rowCount } = await pool.query(
    'SELECT FROM "DttTemplate" WHERE id = $1 AND "ownerId" = $2 AND NOT "detailsPending"',
    [templateId, accountId],
  );
  return rowCount === 1;
}

const notOwned = () => clientError('NOT_FOUND', messages.templateNotOwned);
