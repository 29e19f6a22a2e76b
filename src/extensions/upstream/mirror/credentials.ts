/**
 * The tokens that are sent to the upstream: those of the clients or, if it is set, `UPSTREAM_TOKEN` alone. No other module knows
 * which.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { digestOf, isToken } from '../../../auth/tokens.ts';
import type { Viewer } from '../../../auth/viewer.ts';
import type { Sql } from '../../../database/reader/sql.ts';
import { createSignal, resultWithin } from '../../../database/waiting.ts';
import { type Credential, createUpstreamTokens, type TokenCheck } from '../client/tokens.ts';
import {
  createUpstream,
  isForbidden,
  type Timing,
  Unauthorized,
  UpstreamBusy,
  UpstreamError,
} from '../client/upstream.ts';
import { messages as upstreamMessages } from '../messages.ts';
import { readAccountId } from './account.ts';
import type { Accounts, AccountsOptions } from './accounts.ts';
import { touch } from './mirroredAccount.ts';

export interface CredentialsOptions extends Pick<AccountsOptions, 'base' | 'timing' | 'interval'> {
  readonly accounts: Accounts;
  /** `UPSTREAM_TOKEN`. */
  readonly configured: string | undefined;
  readonly sql: Sql;
  /** For how long after its last use a token is remembered, in milliseconds. */
  readonly idle: number;
  /** After how many milliseconds a token is checked upstream again. */
  readonly maxAge: number;
}

export type Credentials = ReturnType<typeof openCredentials>;

/** For requests that a client waits for: no retries, and no long pause. */
const checkTiming: Partial<Timing> = { timeout: 10_000, retries: 0, longestPause: 1_000 };

/** How long, in milliseconds, a request waits for the first check of the configured token. */
const longestFirstCheck = 3_000;

/** Whether the secret is a token of the gateway's own: active, expired, revoked or replaced. */
export async function isIssued(sql: Sql, token: string): Promise<boolean> {
  if (!isToken(token)) return false;
  const rows = await sql.run(
    'SELECT FROM "ApiToken" WHERE digest = $1::bytea OR "previousDigest" = $1::bytea',
    [Buffer.from(digestOf(token), 'hex')],
  );
  return rows.length > 0;
}

export function openCredentials(options: CredentialsOptions) {
  const { accounts, configured, sql, idle, maxAge } = options;
  const hasConfiguredToken = configured !== undefined;
  const closing = new AbortController();
  const tokens = createUpstreamTokens({
    async check(token, viewer) {
      // A token of the gateway's own is never shown to the upstream, even if it was revoked.
      if (!hasConfiguredToken && !viewer && (await isIssued(sql, token))) return { kind: 'invalid' };
      return askWhose(options, token, viewer?.id, closing.signal);
    },
    onBegin(credential) {
      const account = accounts.getOrAdd(credential.viewer.id);
      account.budget.note();
      account.credentials.add(credential);
    },
    onEnd(credential) {
      const { id } = credential.viewer;
      accounts.getOrAdd(id).credentials.delete(credential);
      if (!hasConfiguredToken) accounts.removeUnreachable(id);
    },
    ttl: maxAge,
    idle,
  });

  let own: Viewer | undefined;
  const firstCheck = createSignal();
  /** Checks the configured token as long as the gateway runs. Its account is refreshed even if no client uses it. */
  async function follow(token: string): Promise<void> {
    while (!closing.signal.aborted) {
      const found = await tokens.authenticate(`Bearer ${token}`, 'UPSTREAM_TOKEN');
      if ('viewer' in found) own = found.viewer ?? undefined;
      if ('viewer' in found && !own)
        accounts.noteFailure(new Unauthorized('', { failure: 'rejected the token' }));
      firstCheck.settle();
      if (own) touch(accounts.getOrAdd(own.id));
      // Until the upstream accepts it, the token is checked as often as the account would be read.
      await sleep(own ? maxAge : options.interval, undefined, { signal: closing.signal }).catch(() => {});
    }
  }
  const following = configured === undefined ? undefined : follow(configured);

  return {
    /** The upstream tokens of clients; undefined if clients have only tokens of this gateway. */
    tokens: hasConfiguredToken ? undefined : tokens,
    /**
     * The token for a viewer's requests: the client's own, or the configured one if it is of the viewer's account. Requests that come
     * right after the start wait for the first check of the configured token.
     */
    async of(viewer: Viewer): Promise<Credential | undefined> {
      if (hasConfiguredToken && !own) await resultWithin(longestFirstCheck, firstCheck.promise);
      const holder = hasConfiguredToken ? own : viewer;
      return holder?.id === viewer.id ? tokens.credentialOf(holder) : undefined;
    },
    noteRejected: tokens.noteRejected,
    /** The error for clients if no token can be used. */
    unreachable: hasConfiguredToken
      ? ({ code: 'BAD_GATEWAY', message: upstreamMessages.upstreamUnusable } as const)
      : ({ code: 'SERVICE_UNAVAILABLE', message: upstreamMessages.accountUnreachable } as const),
    async close(): Promise<void> {
      closing.abort();
      tokens.close();
      await following;
    },
  };
}

/** Asks the upstream for the user of a token. @param userId the user of a token that is already known. */
async function askWhose(
  { base, accounts, configured, timing }: CredentialsOptions,
  token: string,
  userId: number | undefined,
  signal: AbortSignal,
): Promise<TokenCheck> {
  // Not delayed by the budget: as long as a client uses up the budget, a revoked token would stay valid.
  if (userId !== undefined) accounts.getOrAdd(userId).budget.note();
  try {
    const upstream = createUpstream({
      base,
      token,
      isConfigured: configured !== undefined,
      timing: { ...checkTiming, ...timing },
    });
    return { kind: 'valid', userId: await readAccountId(upstream, signal) };
  } catch (error) {
    if (error instanceof Unauthorized || isForbidden(error)) return { kind: 'invalid' };
    if (!signal.aborted) accounts.noteFailure(error);
    return { kind: 'away', retryAfter: retryAfterOf(error) };
  }
}

/** After how many seconds the upstream may be asked about a token again; undefined if it did not respond. */
function retryAfterOf(error: unknown): number | undefined {
  if (error instanceof UpstreamBusy) return error.retryAfter;
  return error instanceof UpstreamError && error.failure.status !== undefined ? 1 : undefined;
}
