/** What the parts of one run through an account share. No other run writes the account meanwhile. */

import type pg from 'pg';
import type { Transaction } from '../../../database/transaction.ts';
import { AnotherAccount, type Upstream } from '../client/upstream.ts';
import { type Account, type IdentifyAccount, identifyByAnyRoute } from './account.ts';
import { kindsOf } from './kinds.ts';
import { createRunReport, type OnProgress } from './report.ts';

export interface RunOptions {
  readonly pool: pg.Pool;
  /** A client that only this run uses. */
  readonly upstream: Upstream;
  readonly signal?: AbortSignal;
  /** Whether to read all sessions, and details of records that have not changed. Otherwise sessions are read only as far as they are new. */
  readonly full?: boolean;
  readonly onProgress?: OnProgress;
  /** Finds the account of the token. By default any operation that names it is used. */
  readonly identify?: IdentifyAccount;
  /** The mark of the last write before the run, which it reads back. */
  readonly mark?: number | undefined;
}

export type UnleasedRun = ReturnType<typeof createRun>;

export interface Run extends UnleasedRun {
  /** Begins a transaction. It fails if another run has taken over. */
  readonly transaction: Transaction;
}

/** @param isNew whether this run has added the account. */
export function createRun(options: RunOptions, account: Account, isNew = false) {
  const { upstream, signal = new AbortController().signal, full = false } = options;
  const { identify = identifyByAnyRoute } = options;
  let confirmedAt = upstream.requestCount();
  return {
    ...options,
    signal,
    full,
    account,
    isNew,
    kinds: kindsOf(account.id),
    report: createRunReport(),
    /**
     * Asks the upstream again for the user of the token. Must be called before records are removed, or written without an owner in
     * them: the token may become that of another account during the run. @throws {AnotherAccount} if it has.
     */
    async confirm(): Promise<void> {
      // Nothing was read since the last confirmation.
      if (upstream.requestCount() === confirmedAt) return;
      if ((await identify(upstream, signal)).id !== account.id) throw anotherAccount();
      confirmedAt = upstream.requestCount();
    },
  };
}

export const anotherAccount = () =>
  new AnotherAccount('The token opens another account than it did.', {
    failure: 'says that a token belongs to another user',
  });
