/** How the requests of clients reach their accounts upstream: those that the proxy forwards, and those of resolvers. */

import type pg from 'pg';
import type { Logger } from 'pino';
import { digestOf } from '../../../auth/tokens.ts';
import type { Viewer } from '../../../auth/viewer.ts';
import { resultWithin } from '../../../database/waiting.ts';
import { clientError } from '../../../errors.ts';
import { announceWrite, type Written } from './accountFreshness.ts';
import type { Accounts } from './accounts.ts';
import type { Credentials, CredentialsOptions } from './credentials.ts';
import type { ElsewhereOptions } from './elsewhere.ts';
import type { WaitLimits } from './freshness.ts';
import { noteWrite, refresh, upstreamFor } from './mirroredAccount.ts';

/**
 * What follows a write that the upstream may have carried out:
 * 1. This gateway forgets the stored REST responses of the account (the listeners).
 * 2. All gateways are told, without waiting for a lock (`announceWrite`). At the same time, the account counts as outdated, first here
 *    (`AccountFreshness.noteWrite`) and then in the database (`FreshnessStore.storeWrite`).
 * 3. If clients use the account, a run reads what the write may have changed (`MirroredAccount.noteWrite`).
 */
export function createWrites(accounts: Accounts, pool: pg.Pool, longest: number) {
  const listeners = new Set<(accountId: number) => void>();
  return {
    add: (listener: (accountId: number) => void) => void listeners.add(listener),
    /** Settles when all gateways know of the write, or after the longest wait. */
    note(accountId: number, what: Written): Promise<unknown> {
      for (const listener of listeners) listener(accountId);
      const account = accounts.known(accountId);
      const noting = account && noteWrite(account, what);
      return resultWithin(longest, Promise.allSettled([announceWrite(pool, accountId), noting]));
    },
  };
}

interface Parts extends Pick<CredentialsOptions, 'base' | 'accounts'> {
  readonly logger: Logger;
  readonly pool: pg.Pool;
  readonly waits: WaitLimits;
  readonly credentials: Credentials;
  readonly writes: ReturnType<typeof createWrites>;
}

/** How the proxy reaches the accounts of viewers. */
export type Forwarding = ReturnType<typeof createForwarding>;
export type UpstreamAccess = NonNullable<Awaited<ReturnType<Forwarding['accessFor']>>>;

export function createForwarding({ base, waits, accounts, credentials, writes }: Parts) {
  return {
    base,
    /** How long, in milliseconds, the upstream may take to respond to a request that is forwarded. */
    longest: waits.forwarding,
    /** Calls the listener with the id of an account after each write of a client through this process. */
    onWrite: writes.add,
    /** The error for a viewer without a token for the account. */
    unreachable: credentials.unreachable,
    /** The access of a viewer; undefined if there is no token for the account. */
    async accessFor(viewer: Viewer) {
      // A request is never sent with the token of another client, which may be another account's by now.
      const credential = await credentials.of(viewer);
      const account = accounts.known(viewer.id);
      if (!account || !credential) return undefined;
      const { token } = credential;
      return {
        accountId: viewer.id,
        token,
        budget: account.budget,
        inTurn: account.onDemand,
        /** Identifies the token without holding it: a stored response may outlive the token. */
        tokenDigest: digestOf(token),
        /** Must be called when the upstream has rejected the token. */
        noteRejected: () => credentials.noteRejected(credential, false),
        /**
         * Must be called after a write, below the base, that the upstream may have carried out. Settles once all gateways have been
         * told, or after the longest wait.
         */
        noteWrite: (path: string) => writes.note(viewer.id, writtenAt(path)),
      };
    },
  };
}

/** How resolvers reach the accounts of viewers. */
export function elsewhereOptions(parts: Parts): ElsewhereOptions {
  const { pool, logger, waits, accounts, credentials, writes } = parts;
  const { code, message } = credentials.unreachable;
  return {
    pool,
    logger,
    async accountOf(viewer, guard) {
      const account = await accounts.of(viewer.id);
      const token = await credentials.of(viewer);
      return (
        account && {
          upstream: upstreamFor(account, token, guard),
          budget: account.budget,
          refresh: () => resultWithin(waits.freshness, refresh(account, performance.now())),
        }
      );
    },
    onActivated: ({ id }) => writes.note(id, 'template'),
    unreachable: clientError(code, message),
  };
}

/** What a write to a path may have changed. */
function writtenAt(path: string): Written {
  if (/^\/dtt\/(templates|settings)(\/|$)/.test(path)) return 'template';
  return /^\/dtt\/sessions\/./.test(path) ? 'session' : 'other';
}
