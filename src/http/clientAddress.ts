/** The address that a request comes from, as rate limits count it. */

import type { IncomingMessage } from 'node:http';
import ipaddr from 'ipaddr.js';
import proxyAddr from 'proxy-addr';

/**
 * Where the request comes from, as far as the proxies that are trusted tell: each of them adds the address that it
 * was called from at the end of `X-Forwarded-For`. Of IPv6 only the network counts, since whoever has one address of
 * a network has all of them.
 */
export function addressOf(request: IncomingMessage, trustedProxies: number): string {
  return networkOf(proxyAddr(request, (_address, hop) => hop < trustedProxies) ?? '');
}

/** How many of the eight groups of an IPv6 address name the network. */
const networkGroups = 4;

/** What is no address counts as it is written. */
function networkOf(hop: string): string {
  // Some proxies add the port.
  const written = hop.replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1').replace(/^\[([^\]]*)\](:\d+)?$/, '$1');
  if (!ipaddr.isValid(written)) return written;
  // `process` gives the IPv4 address that an IPv6 one may stand for.
  const address = ipaddr.process(written);
  if (address instanceof ipaddr.IPv4) return address.toString();
  return address.parts
    .slice(0, networkGroups)
    .map((group) => group.toString(16))
    .join(':');
}
