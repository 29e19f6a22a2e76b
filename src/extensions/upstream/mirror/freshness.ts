/** Delays a request until the viewer's account has been read, and is as fresh as the request needs it. */

import { resultWithin } from '../../../database/waiting.ts';
import { errorResponse } from '../../../http/errorResponse.ts';
import type { Exchange } from '../../../http/exchange.ts';
import type { HttpResponse } from '../../../http/response.ts';
import { messages as upstreamMessages } from '../messages.ts';
import { arrival, type MirroredAccount, refresh, touch } from './mirroredAccount.ts';

/** How long, in milliseconds, a request waits at most. */
export const usualWaits = {
  /** Until its account is here for the first time. */
  arrival: 10_000,
  /** Until the account is as fresh as the request wants it. */
  freshness: 10_000,
  /** Until an account that was unused for a while is fresh again. */
  awakening: 3_000,
  /** Until the upstream responds to a request that is forwarded. */
  forwarding: 15_000,
  /** Until all gateways have been told of a write, before the response to it is sent. */
  announcement: 5_000,
};

export type WaitLimits = Readonly<typeof usualWaits>;

/** How many requests a refresh takes at least. */
const requestsOfRefresh = 8;

/** In seconds. */
const retryAfter = 5;

/** Waits until the viewer's account is here and fresh. Returns a response if the client has to ask again, undefined otherwise. */
export async function waitUntilFresh(
  exchange: Exchange,
  account: MirroredAccount,
  waits: WaitLimits,
): Promise<HttpResponse | undefined> {
  const { freshness, runs, credentials } = account;
  const awakening = touch(account);
  if (freshness.refreshedAt === undefined) await resultWithin(waits.arrival, awakening ?? arrival(account));
  else {
    await resultWithin(waits.awakening, awakening);
    await makeFresh(exchange, account, waits.freshness);
  }
  if (freshness.refreshedAt === undefined) {
    const arriving = `${upstreamMessages.accountArriving}: ${runs.progress()} records so far`;
    return askAgain(exchange, credentials.size === 0 ? upstreamMessages.accountUnread : arriving);
  }
  if (freshness.isOutdated) return askAgain(exchange, upstreamMessages.accountOutdated);
  exchange.headers.Age = String(Math.floor(freshness.age / 1_000));
  return undefined;
}

/**
 * Waits until an account that is here is as fresh as the request asks for. If the budget or the upstream does not allow a
 * refresh, the request goes on: `Age` says how old the response is (RFC 9111, section 5.1).
 */
async function makeFresh(exchange: Exchange, account: MirroredAccount, longest: number): Promise<void> {
  const { freshness, budget, credentials } = account;
  const oldest = freshnessOf(exchange.request.headers['cache-control']) ?? Number.POSITIVE_INFINITY;
  if (!freshness.isOutdated && freshness.age <= oldest) return;
  if (credentials.size > 0 && budget.delayFor(requestsOfRefresh, 'refresh') < longest)
    await resultWithin(longest, refresh(account, performance.now() - oldest));
}

function askAgain(exchange: Exchange, message: string): HttpResponse {
  const headers = { 'Retry-After': String(retryAfter) };
  return errorResponse(exchange.endpoint, { code: 'SERVICE_UNAVAILABLE', message }, headers);
}

/**
 * The maximum age, in milliseconds, of a response by the `Cache-Control` of the request (RFC 9111, section 5.2.1); undefined
 * if it has none.
 */
export function freshnessOf(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  if (/(^|,)\s*no-cache\s*(,|$)/i.test(header)) return 0;
  const seconds = header.match(/(?:^|,)\s*max-age\s*=\s*"?(\d+)"?\s*(?:,|$)/i)?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1_000;
}
