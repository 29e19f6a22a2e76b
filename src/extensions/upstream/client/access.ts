/** The types by which the proxy reaches the accounts of viewers upstream: accounts, requests and responses. */

import type { Viewer } from '../../../auth/viewer.ts';
import type { ErrorCode } from '../../../errors.ts';
import type { HttpResponse } from '../../../http/response.ts';
import type { Budget } from './budget.ts';
import type { InTurn } from './turns.ts';

export interface UpstreamAccess {
  readonly accountId: number;
  /** A token of the account: that of the client, if it is an upstream token. */
  readonly token: string;
  readonly budget: Budget;
  readonly inTurn: InTurn;
  readonly reader: Reader;
  /** Must be called when the upstream has rejected the token. */
  noteRejected(): void;
  /**
   * Must be called after a write that the upstream may have carried out. Settles once all gateways have been told, or after 5 s.
   * @param path of the write, below the base.
   */
  noteWrite(path: string): Promise<unknown>;
}

/** Identifies the token of a read without holding it: a stored response may outlive the token. */
export interface Reader {
  /** The digest of the token. */
  readonly id: string;
  /** Asks the upstream to confirm the token, unless it has since then. @param since a time by `performance.now()`. */
  confirmSince(since: number): Promise<boolean>;
}

export interface UpstreamAccounts {
  /** The base URL of the upstream, with the version segment. */
  readonly base: string;
  /** How long, in milliseconds, the upstream may take to respond to a request that is forwarded. */
  readonly longest: number;
  /** The access of a viewer; undefined if there is no token for the account. */
  accessFor(viewer: Viewer): Promise<UpstreamAccess | undefined>;
  /** The error for a viewer without a token for the account. */
  readonly unreachable: { readonly code: ErrorCode; readonly message: string };
  /** Calls the listener with the id of an account after each write of a client through this process. */
  onWrite(listener: (accountId: number) => void): void;
}

/** Headers of a request or a response, by their names in lower case. */
export type Headers = Readonly<Record<string, string>>;

/** A request as the upstream gets it. */
export interface UpstreamRequest {
  readonly method: string;
  readonly url: URL;
  /** The path and the query as the client has sent them, below the path of the base URL. */
  readonly path: string;
  /** Without `Authorization`. */
  readonly headers: Headers;
  readonly body: Buffer;
}

/** A response of the upstream, with the headers that concern the client; or the gateway's own error if there is none. */
export interface UpstreamResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Buffer;
  /** The gateway's own error response, if the upstream gave none. */
  readonly error?: HttpResponse;
  /** Whether the upstream may have got the request. */
  readonly wasSent: boolean;
}
