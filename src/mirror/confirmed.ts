/**
 * A mirror that takes what was read only once the upstream has said again whose the token is: one that comes to mean another
 * account while a run is under way reads what is that account's, and misses what was this one's.
 */

import type { IdentifyAccount, Named } from './account.ts';
import type { Mirror } from './mirror.ts';
import { AnotherAccount, type Upstream } from './upstream.ts';

/** Asks the upstream whether the token opens the account still. @throws {AnotherAccount} when it does not. */
export type Confirm = () => Promise<void>;

export interface ConfirmOptions {
  /** Which nothing but the run makes use of. */
  readonly upstream: Upstream;
  readonly learn: IdentifyAccount;
  readonly named?: Named | undefined;
  readonly signal: AbortSignal;
}

/** @param accountId whose account it has to be. */
export function createConfirm(
  { upstream, learn, named, signal }: ConfirmOptions,
  accountId: number,
): Confirm {
  let confirmedAt = upstream.requestCount();
  return async () => {
    // Nothing was read since.
    if (upstream.requestCount() === confirmedAt) return;
    const { row } = await learn(upstream, named, signal);
    if (row.id !== accountId) throw anotherAccount();
    confirmedAt = upstream.requestCount();
  };
}

export const anotherAccount = () =>
  new AnotherAccount('The token opens another account than it did.', {
    failure: 'answers another user for a token',
  });

/** For lists: what they have, and what they lack. */
export function confirmedLists(mirror: Mirror, confirm: Confirm): Mirror {
  return {
    ...confirmedDetails(mirror, confirm),
    async write(kind, records, onRejected, asked) {
      // Records of other kinds say whose they are.
      const isOfAnybody = kind.table === 'DttTemplate' || kind.table === 'DttSession';
      if (isOfAnybody && records.length > 0) await confirm();
      return mirror.write(kind, records, onRejected, asked);
    },
    async setActiveTemplate(id, before) {
      // Most runs find that it is the active one still, which changes nothing.
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

/** For details, which are those of records that are the account's: what there is not. */
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
