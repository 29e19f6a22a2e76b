/** Lets a request about an account through once the account is here, and as fresh as it has to be. */

import { setTimeout as sleep } from 'node:timers/promises';
import { messages } from '../errors.ts';
import { errorResponse } from '../http/errorResponse.ts';
import type { Exchange } from '../http/exchange.ts';
import type { HttpResponse } from '../http/response.ts';
import type { MirroredAccount } from './mirroredAccount.ts';

/** How many requests a refresh takes, at the least. */
const requestsOfRefresh = 8;

/** In seconds. */
const retryAfter = 5;

/**
 * Waits for an account that is here to be as fresh as the request wants it. What the budget or the upstream does not allow
 * is left: `Age` says how old the response is (RFC 9111, section 5.1).
 */
export async function makeFresh(
  exchange: Exchange,
  account: MirroredAccount,
  longest: { readonly awakening: number; readonly freshness: number },
): Promise<void> {
  const awakening = account.touch();
  if (awakening) await within(longest.awakening, awakening);
  const wanted = freshnessOf(exchange.request.headers['cache-control']);
  if (account.isOutdated || (wanted !== undefined && ageOf(account) > wanted)) {
    const isAllowed = account.budget.delayFor(requestsOfRefresh, 'refresh') < longest.freshness;
    if (isAllowed && !account.isUnreachable) await within(longest.freshness, account.refresh());
  }
  exchange.headers.Age = String(Math.floor(ageOf(account) / 1_000));
}

/** Waits for an account to be here for the first time. Returns the response to a request that has to ask again. */
export async function awaitArrival(
  exchange: Exchange,
  account: MirroredAccount,
  longest: number,
): Promise<HttpResponse | undefined> {
  const arriving = account.touch() ?? account.arrival();
  if (arriving) await within(longest, arriving);
  if (account.refreshedAt !== undefined) {
    exchange.headers.Age = String(Math.floor(ageOf(account) / 1_000));
    return undefined;
  }
  const message = account.isUnreachable
    ? messages.accountUnread
    : `${messages.accountArriving}: ${account.progress} records so far`;
  return errorResponse(
    exchange.endpoint,
    { code: 'SERVICE_UNAVAILABLE', message },
    { 'Retry-After': String(retryAfter) },
  );
}

/** How old, in milliseconds, what is here may be. */
function ageOf({ refreshedAt = 0 }: MirroredAccount): number {
  return Math.max(Date.now() - refreshedAt, 0);
}

/**
 * How old, in milliseconds, a response may be at most by the request's `Cache-Control` (RFC 9111, section 5.2.1); undefined
 * if it does not say.
 */
export function freshnessOf(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  if (/(^|,)\s*no-cache\s*(,|$)/i.test(header)) return 0;
  const seconds = header.match(/(?:^|,)\s*max-age\s*=\s*"?(\d+)"?\s*(?:,|$)/i)?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1_000;
}

/** Waits for something, but no longer than so many milliseconds. */
export async function within(milliseconds: number, what: Promise<unknown>): Promise<void> {
  const stop = new AbortController();
  await Promise.race([
    what.catch(() => {}),
    sleep(milliseconds, undefined, { signal: stop.signal, ref: false }).catch(() => {}),
  ]);
  stop.abort();
}
