/** The address that a request comes from. */

import type { IncomingMessage } from 'node:http';
import ipaddr from 'ipaddr.js';
import proxyAddr from 'proxy-addr';

/**
 * The address of the client, as far as the trusted proxies report it: each adds the address of its own client at the end of
 * `X-Forwarded-For`. An IPv6 address is reduced to its network, since the owner of one address of a network has all of
 * them.
 */
export function addressOf(request: IncomingMessage, trustedProxies: number): string {
  return networkOf(proxyAddr(request, (_address, hop) => hop < trustedProxies) ?? '');
}

/** How many of the eight groups of an IPv6 address name the network. */
const networkGroups = 4;

/** The network of an IPv6 address, or the IPv4 address itself. A text that is no address stays as it is. */
export function networkOf(hop: string): string {
  // Some proxies add the port.
  const written = hop.replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1').replace(/^\[([^\]]*)\](:\d+)?$/, '$1');
  if (!ipaddr.isValid(written)) return written;
  // `process` converts an IPv4-mapped IPv6 address to IPv4.
  const address = ipaddr.process(written);
  if (address instanceof ipaddr.IPv4) return address.toString();
  return address.parts
    .slice(0, networkGroups)
    .map((group) => group.toString(16))
    .join(':');
}
