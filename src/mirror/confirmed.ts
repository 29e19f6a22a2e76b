/**
 * A mirror that writes only after the upstream has confirmed whose the token is. If a token comes to mean another account
 * during a run, the run reads that account's records, and misses those of this one.
 */

import { AnotherAccount, type Upstream } from '../upstream/upstream.ts';
import type { IdentifyAccount, Named } from './account.ts';
import type { Mirror } from './mirror.ts';

/** Asks the upstream whether the token still belongs to the account. @throws {AnotherAccount} if it does not. */
export type Confirm = () => Promise<void>;

export interface ConfirmOptions {
  /** A client that only this run uses. */
  readonly upstream: Upstream;
  readonly identify: IdentifyAccount;
  readonly named?: Named | undefined;
  readonly signal: AbortSignal;
}

/** @param accountId the account that the token has to belong to. */
export function createConfirm(
  { upstream, identify, named, signal }: ConfirmOptions,
  accountId: number,
): Confirm {
  let confirmedAt = upstream.requestCount();
  return async () => {
    // Nothing was read since the last confirmation.
    if (upstream.requestCount() === confirmedAt) return;
    const { row } = await identify(upstream, named, signal);
    if (row.id !== accountId) throw anotherAccount();
    confirmedAt = upstream.requestCount();
  };
}

export const anotherAccount = () =>
  new AnotherAccount('The token opens another account than it did.', {
    failure: 'says that a token belongs to another user',
  });

/** For runs through lists: confirms before records are written, and before records that lists lack are removed. */
export function confirmedLists(mirror: Mirror, confirm: Confirm): Mirror {
  return {
    ...confirmedDetails(mirror, confirm),
    async write(kind, records, onRejected, asked) {
      // Records of other kinds name their owner.
      const isOfAnybody = kind.table === 'DttTemplate' || kind.table === 'DttSession';
      if (isOfAnybody && records.length > 0) await confirm();
      return mirror.write(kind, records, onRejected, asked);
    },
    async setActiveTemplate(id, before) {
      // In most runs it is still the active one, which changes nothing.
      if ((await mirror.activeTemplate()) === id) return false;
      await confirm();
      return mirror.setActiveTemplate(id, before);
    },
    async setSessionsComplete(complete) {
      if (complete) await confirm();
      return mirror.setSessionsComplete(complete);
    },
    async setRefreshed(began) {
      // Until the account is here, that lists are empty changes nothing. Later, records that they lack are removed.
      if (!mirror.sessionsComplete) await confirm();
      return mirror.setRefreshed(began);
    },
  };
}

/** For runs through details, which belong to records of the account: confirms before a record counts as missing. */
export function confirmedDetails(mirror: Mirror, confirm: Confirm): Mirror {
  return {
    ...mirror,
    async noteDenied(kind, ids) {
      await confirm();
      return mirror.noteDenied(kind, ids);
    },
    async remove(kind, ids) {
      await confirm();
      return mirror.remove(kind, ids);
    },
  };
}
