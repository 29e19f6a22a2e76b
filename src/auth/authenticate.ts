/** Admission: finds out who is asking, and turns away those who ask too often. */

import type { IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';
import type { Viewer, Viewers } from './viewer.ts';
import type { Config } from '../config.ts';
import type { Database } from '../database/database.ts';
import type { Exchange } from '../http/exchange.ts';
import type { Gate } from '../http/loadShedding.ts';
import { createRateLimit, type RateLimit, type Standing } from '../http/rateLimit.ts';
import { type HttpError, httpErrors } from '../http/errorResponse.ts';

export interface Limits {
  /** For each token. */
  readonly tokens: RateLimit;
  /** For each address, of the requests without a token that is known. */
  readonly anonymous: RateLimit;
  /** How many proxies there are between the gateway and the clients. */
  readonly trustedProxies: number;
}

/** What was found out: the viewer, null for a stranger, or why they are turned away. */
export type Admission = { readonly viewer: Viewer | null } | { readonly refusal: HttpError };

/** @param database where gateways that share it tell each other what they counted. */
export function createLimits(
  config: Pick<Config, 'RATE_LIMIT' | 'RATE_LIMIT_ANONYMOUS' | 'TRUST_PROXY'>,
  { embedded, pool }: Database,
): Limits {
  const shared = embedded ? undefined : pool;
  return {
    tokens: createRateLimit({ name: 'token', limit: config.RATE_LIMIT, shared }),
    anonymous: createRateLimit({ name: 'address', limit: config.RATE_LIMIT_ANONYMOUS, shared }),
    trustedProxies: config.TRUST_PROXY,
  };
}

/** How things stand with who asks is told by the headers of the answer, whatever it will be. */
export function createAdmission(
  viewers: Viewers,
  limits: Limits,
  gate: Gate,
): (exchange: Exchange) => Promise<Admission> {
  const { tokens, anonymous, trustedProxies } = limits;
  return async (exchange) => {
    const { request } = exchange;
    const { authorization } = request.headers;
    let viewer: Viewer | null | undefined = viewers.known(authorization);
    if (!viewer && !gate(exchange)) return { refusal: httpErrors.tooBusy };
    // Looked up before anything is counted: whoever has a token is no stranger, however many of those there are at the
    // address; nor is it anybody's fault when it could not be looked up.
    viewer ??= await viewers.authenticate(authorization);
    if (viewer) return admit(exchange, viewer, await tokens.spend(String(viewer.tokenId)));
    return admit(exchange, null, await anonymous.spend(addressOf(request, trustedProxies)));
  };
}

function admit(exchange: Exchange, viewer: Viewer | null, { isExceeded, headers }: Standing): Admission {
  Object.assign(exchange.headers, headers);
  return isExceeded ? { refusal: httpErrors.tooManyRequests } : { viewer };
}

/**
 * Where the request comes from, as far as the proxies that are trusted tell: each of them adds the address that it
 * was called from at the end of `X-Forwarded-For`. Of IPv6 only the network counts, since whoever has one address of
 * a network has all of them.
 */
export function addressOf({ socket, headers }: IncomingMessage, trustedProxies: number): string {
  const direct = socket.remoteAddress ?? '';
  if (trustedProxies === 0) return networkOf(direct);
  const forwarded = headers['x-forwarded-for'];
  const hops = [...String(forwarded ?? '').split(','), direct].map((hop) => hop.trim()).filter(Boolean);
  return networkOf(hops.at(-1 - trustedProxies) ?? hops[0] ?? direct);
}

function networkOf(hop: string): string {
  // Some proxies add the port.
  const address = hop.replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1').replace(/^\[([^\]]*)\](:\d+)?$/, '$1');
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped) return mapped;
  if (!isIPv6(address)) return address;
  const [head = '', tail] = address.toLowerCase().split('::');
  const groups = head.split(':').filter(Boolean);
  const rest = tail === undefined ? [] : tail.split(':');
  const zeros = Array.from({ length: 8 - groups.length - rest.length }, () => '0');
  return [...groups, ...zeros, ...rest].slice(0, 4).join(':');
}
