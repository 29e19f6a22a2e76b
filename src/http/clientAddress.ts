/** The address that a request comes from, as rate limits count it. */

import type { IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';

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
