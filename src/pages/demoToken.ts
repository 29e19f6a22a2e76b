/** To whom the pages show the token of the demo account. */

import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, isIPv6 } from 'node:net';
import type { Config } from '../config.ts';
import { isEverywhere } from '../http/origin.ts';

/** The token that may stand in a page that the request gets; undefined for any other request. */
export type DemoTokenFor = (request: IncomingMessage) => string | undefined;

/**
 * A page of another site can have a browser resolve the site's own name to this gateway (DNS rebinding), and could then
 * read the token if our pages showed it under any name. So they show it only under names that nobody else can point
 * here: those of the machine itself, and HOST. A gateway that listens on every address shows it to nobody: clients other
 * than browsers may come from anywhere, and send whatever name they like.
 */
export function createDemoTokenFor(
  token: string | undefined,
  { HOST: given, SHOW_DEMO_TOKEN }: Pick<Config, 'HOST' | 'SHOW_DEMO_TOKEN'>,
): DemoTokenFor {
  if (token === undefined) return () => undefined;
  if (SHOW_DEMO_TOKEN === 'on') return () => token;
  const HOST = written(given);
  if (isEverywhere(HOST)) return () => undefined;
  const ownNames = ['localhost', HOST.toLowerCase()];
  const ownAddresses = addresses('::1', HOST);
  ownAddresses.addSubnet('127.0.0.0', 8);
  const isOwn = (authority: string) => {
    const name = nameIn(authority);
    return name !== undefined && (ownNames.includes(name) || includes(ownAddresses, name));
  };
  return ({ headers: { host = '' }, url = '' }) => {
    // In the absolute form the target names a host as well (RFC 9112, section 3.2.2).
    const inTarget = /^[a-z][a-z\d+.-]*:\/\/([^/?#]*)/i.exec(url)?.[1];
    return isOwn(host) && (inTarget === undefined || isOwn(inTarget)) ? token : undefined;
  };
}

/** The host with an address of IPv4 written out, of which numbers will do for the system: `0` is `0.0.0.0`. */
function written(host: string): string {
  const url = `http://${host}`;
  return !isIPv6(host) && URL.canParse(url) ? new URL(url).hostname : host;
}

/** The name or address in `name:port`, in lower case and without brackets; undefined for anything else. */
function nameIn(authority: string): string | undefined {
  const [, address, name] = /^(?:\[([\da-f:.]+)\]|([\w.-]+?)\.?)(?::\d{1,5})?$/i.exec(authority) ?? [];
  return address ?? name?.toLowerCase();
}

function addresses(...those: readonly string[]): BlockList {
  const list = new BlockList();
  // Not those with the name of an interface, which no browser says.
  for (const each of those)
    if (isIP(each) && !each.includes('%')) list.addAddress(each, isIPv6(each) ? 'ipv6' : 'ipv4');
  return list;
}

/** Whether the address is in the list, however it is written; one of IPv4 also as IPv6 writes it, `::ffff:127.0.0.1`. */
function includes(list: BlockList, address: string): boolean {
  return isIP(address) !== 0 && list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}
