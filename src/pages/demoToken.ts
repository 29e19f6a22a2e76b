/** Decides which requests get pages with the token of the demo account. */

import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, isIPv6 } from 'node:net';
import type { Config } from '../config/config.ts';
import { canonicalHost, isEverywhere } from '../http/port.ts';

/** The token that may stand in a page that the request gets; undefined for any other request. */
export type DemoTokenFor = (request: IncomingMessage) => string | undefined;

/**
 * Another site can have its own name resolve to this gateway (DNS rebinding). If the pages had the token under any name, the
 * site's scripts could read it. So they have it only under names that nobody else can point here: those of the machine itself, and
 * HOST. If the gateway listens on every address, no page has the token: clients other than browsers could come from anywhere,
 * and send any name.
 */
export function createDemoTokenFor(
  token: string | undefined,
  { HOST: given, SHOW_DEMO_TOKEN }: Pick<Config, 'HOST' | 'SHOW_DEMO_TOKEN'>,
): DemoTokenFor {
  if (token === undefined || SHOW_DEMO_TOKEN === 'on') return () => token;
  const HOST = canonicalHost(given);
  if (isEverywhere(HOST)) return () => undefined;
  const ownNames = ['localhost', HOST];
  const ownAddresses = createAddressList('::1', HOST);
  ownAddresses.addSubnet('127.0.0.0', 8);
  const isOwn = (authority: string) => {
    const name = nameIn(authority);
    return name !== undefined && (ownNames.includes(name) || includes(ownAddresses, name));
  };
  return ({ headers: { host = '' }, url = '' }) => {
    // A target in absolute form names a host as well (RFC 9112, section 3.2.2).
    const inTarget = /^[a-z][a-z\d+.-]*:\/\/([^/?#]*)/i.exec(url)?.[1];
    return isOwn(host) && (inTarget === undefined || isOwn(inTarget)) ? token : undefined;
  };
}

/** The name or address in `name:port`, in lower case and without brackets; undefined for anything else. */
function nameIn(authority: string): string | undefined {
  const [, address, name] = /^(?:\[([\da-f:.]+)\]|([\w.-]+?)\.?)(?::\d{1,5})?$/i.exec(authority) ?? [];
  return address ?? name?.toLowerCase();
}

function createAddressList(...all: readonly string[]): BlockList {
  const list = new BlockList();
  // An address with the name of an interface is left out: browsers do not send those.
  for (const each of all)
    if (isIP(each) && !each.includes('%')) list.addAddress(each, isIPv6(each) ? 'ipv6' : 'ipv4');
  return list;
}

/** Whether the list has the address in any of its forms, including an IPv4 address in IPv6 form, such as `::ffff:127.0.0.1`. */
function includes(list: BlockList, address: string): boolean {
  return isIP(address) !== 0 && list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}
