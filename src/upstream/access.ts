/** How requests of viewers reach their accounts upstream. */

import type { Viewer } from '../auth/viewer.ts';
import type { Budget } from './budget.ts';

/** An account of the upstream, as the requests of one of its viewers reach it. */
export interface UpstreamAccess {
  readonly accountId: number;
  /** A token of the account: the client's own, if that is one of the upstream's. */
  readonly token: string;
  readonly budget: Budget;
  readonly reader: Reader;
  /** Must be called when the upstream has rejected the token. */
  noteRejected(): void;
  /**
   * Must be called after a write that the upstream may have carried out. Settles once all gateways have been told, or after 5 s.
   * @param path of the write, below the base.
   */
  noteWrite(path: string): Promise<unknown>;
}

/** A token that reads are sent with. It does not hold the token itself: what was read may be stored for longer. */
export interface Reader {
  /** The digest of the token. */
  readonly id: string;
  /** Whether the upstream has said, or says now, that the token is the account's. @param since a time by `performance.now()`. */
  isConfirmedSince(since: number): Promise<boolean>;
}

/** The accounts of the upstream. */
export interface UpstreamAccounts {
  /** The base URL of the upstream, with the version segment. */
  readonly base: string;
  /** How long, in milliseconds, the upstream may take to respond to a request that is forwarded. */
  readonly longest: number;
  /** How requests of a viewer reach the account; undefined if there is no token for it. */
  accessFor(viewer: Viewer): UpstreamAccess | undefined;
  /** The error for a viewer without such a token. */
  readonly unreachable: { readonly status: number; readonly message: string };
  /** Calls the listener with the id of each account that a client has written to through this process. */
  onWrite(listener: (accountId: number) => void): void;
}
