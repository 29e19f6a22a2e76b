/** Names and addresses of hosts: the one at which a server is reached, and those of the machine itself. */

import { BlockList, isIP, isIPv6 } from 'node:net';

/**
 * The origin by which this machine reaches a server. If it listens on every address, that is the loopback address. An IPv6
 * address is written in brackets (RFC 3986, section 3.2.2).
 */
export function originOf(host: string, port: number): string {
  return `http://${ownAddress[canonicalHost(host)] ?? bracketed(host)}:${port}`;
}

const bracketed = (host: string) => (host.includes(':') ? `[${host}]` : host);

/** The loopback address for each address that means every address. The last is the first in IPv6 notation. */
const ownAddress: Readonly<Record<string, string>> = {
  '0.0.0.0': '127.0.0.1',
  '[::]': '[::1]',
  '[::ffff:0:0]': '127.0.0.1',
};

/** Whether a value of HOST listens on every address of the machine. */
export function isEverywhere(host: string): boolean {
  return Object.hasOwn(ownAddress, canonicalHost(host));
}

/**
 * The host as URLs have it: a name in lower case, an IPv4 address in its usual form, where the system takes `10.1` for
 * `10.0.0.1` and `0` for `0.0.0.0`, an IPv6 address in brackets.
 */
export function canonicalHost(host: string): string {
  const url = `http://${bracketed(host)}`;
  return URL.canParse(url) ? new URL(url).hostname : host;
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8);
loopback.addAddress('::1', 'ipv6');

/** Whether an address is of the machine itself, also an IPv4 address in IPv6 form, such as `::ffff:127.0.0.1`. */
export function isLoopback(name: string): boolean {
  const address = name.replace(/^\[(.*)\]$/, '$1');
  return isIP(address) !== 0 && loopback.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}

/** The name or address in `name:port`, as URLs have it; undefined for anything else. */
export function nameIn(authority: string): string | undefined {
  const url = `http://${authority}`;
  if (!/^[\w.:[\]-]+$/.test(authority) || !URL.canParse(url)) return undefined;
  return new URL(url).hostname.replace(/\.$/, '');
}

/** Whether a name is that of every machine for itself. No other site can point it here. */
export const isOwnName = (name = ''): boolean => name === 'localhost' || isLoopback(name);
