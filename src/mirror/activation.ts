/** Activation of a template of a mirrored account: first where the account lives, then in the mirror. */

import type pg from 'pg';
import type { Logger } from 'pino';
import { z } from 'zod';
import { clientError, messages } from '../errors.ts';
import type { UpstreamAccount } from '../schema/context.ts';
import { mirroredUser, transactionOn, writeRecords } from './mirror.ts';
import { kindsOf } from './records.ts';
import { HttpError, isMissing, type Timing, Unavailable, type Upstream, UpstreamError } from './upstream.ts';

/** A client is waiting: one repetition has to do. */
export const activationTiming: Partial<Timing> = { timeout: 10_000, retries: 1, timeouts: 1_000 };

/** What it comes to in milliseconds, at the most: a template may have to be read first. */
export const longestActivation = 45_000;

/** Whatever else a success says, it is one. */
const activated = z.object({ scheduleTypeChanged: z.boolean() }).catch({ scheduleTypeChanged: false });

export interface ActivationOptions {
  readonly pool: pg.Pool;
  readonly upstream: Upstream;
  readonly logger: Logger;
}

export function createUpstreamAccount({ pool, upstream, logger }: ActivationOptions): UpstreamAccount {
  return {
    async activate(viewer, templateId) {
      if ((await mirroredUser(pool)) !== viewer.id) return undefined;
      if (templateId < 1) throw refused();
      try {
        // What is activated there must be here to be pointed at: a template may be newer than the last refresh.
        if (!(await isKnown(templateId))) await bring(templateId, viewer.id);
        return activated.parse(await upstream.post(`/dtt/templates/${templateId}`, { isActive: true }));
      } catch (error) {
        if (isMissing(error)) throw refused();
        if (!(error instanceof UpstreamError)) throw error;
        logger.warn({ upstream: error.message }, 'activation failed');
        const away = error instanceof Unavailable;
        throw clientError('BAD_GATEWAY', away ? messages.upstreamAway : messages.upstreamUnusable);
      }
    },
  };

  async function isKnown(templateId: number): Promise<boolean> {
    const { rowCount } = await pool.query('SELECT FROM "DttTemplate" WHERE id = $1 AND "ownerId" > 0', [
      templateId,
    ]);
    return rowCount === 1;
  }

  async function bring(templateId: number, accountId: number): Promise<void> {
    const kind = kindsOf(accountId).dttTemplates;
    const { data: record } = kind.record.safeParse(await upstream.get(`${kind.item}${templateId}`));
    if (record?.row.id !== templateId)
      throw new HttpError(`GET ${kind.item}${templateId}: not valid`, 200, undefined);
    await writeRecords(transactionOn(pool), kind, [record], accountId, (_record, reason) => {
      throw new UpstreamError(`${kind.item}${templateId}: ${reason}`);
    });
  }
}

const refused = () => clientError('NOT_FOUND', messages.templateNotOwned);
