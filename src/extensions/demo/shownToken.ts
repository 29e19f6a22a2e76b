/** Decides which requests get pages with the token of the demo account. */

import type { IncomingMessage } from 'node:http';
import type { Config } from '../config/config.ts';
import { type ChangeFeed, concernsTokens } from '../database/feed/changeFeed.ts';
import { canonicalHost, isEverywhere, isOwnName, nameIn } from '../http/hostName.ts';

/** The token that may stand in a page that the request gets; undefined for any other request. */
export type DemoTokenFor = (request: IncomingMessage) => string | undefined;

/**
 * Another site can have its own name resolve to this gateway (DNS rebinding), and its scripts could then read a token in a page.
 * So pages have the token only under names that no other site can point here: those of the machine itself, and HOST. If the gateway
 * listens on every address, no page has the token: clients other than browsers could come from anywhere, and send any
 * name.
 */
export function createDemoTokenFor(
  token: string | undefined,
  { HOST, DEMO_ACCOUNT }: Pick<Config, 'HOST' | 'DEMO_ACCOUNT'>,
): DemoTokenFor {
  if (token === undefined || DEMO_ACCOUNT === 'public') return () => token;
  if (isEverywhere(HOST)) return () => undefined;
  const host = canonicalHost(HOST);
  const isOwn = (authority: string) => {
    const name = nameIn(authority);
    return name === host || isOwnName(name);
  };
  return ({ headers, url = '' }) => {
    // A target in absolute form names a host as well (RFC 9112, section 3.2.2).
    const inTarget = /^[a-z][a-z\d+.-]*:\/\/([^/?#]*)/i.exec(url)?.[1];
    return isOwn(headers.host ?? '') && (inTarget === undefined || isOwn(inTarget)) ? token : undefined;
  };
}

/**
 * Leaves the token out of all pages once it is revoked. The next start creates another one.
 * @param isValid looks the token up.
 */
export function untilRevoked(
  tokenFor: DemoTokenFor,
  feed: Pick<ChangeFeed, 'subscribe'>,
  isValid: () => Promise<boolean>,
): DemoTokenFor {
  let isRevoked = false;
  async function check(): Promise<void> {
    if (isRevoked || (await isValid())) return;
    isRevoked = true;
    unsubscribe();
  }
  const unsubscribe = feed.subscribe((change) => {
    // After an outage of the database, the feed announces a change of all tables.
    if (concernsTokens(change)) check().catch(() => {});
  });
  return (request) => (isRevoked ? undefined : tokenFor(request));
}
