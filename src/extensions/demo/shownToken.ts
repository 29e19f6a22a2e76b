/** Decides which requests get pages with the token of the demo account. */

import { findToken } from '../../auth/tokens.ts';
import { type ChangeFeed, concernsTokens } from '../../database/feed/changeFeed.ts';
import type { Sql } from '../../database/reader/sql.ts';
import type { ShownToken } from '../../extensionPoints.ts';
import { canonicalHost, isEverywhere, isOwnName, nameIn } from '../../http/hostName.ts';

interface Place {
  readonly HOST: string;
  readonly DEMO_ACCOUNT: 'local' | 'public';
}

/** The token, which is left out of all pages once it is revoked. The next start creates another one. */
export function showToken(
  token: string,
  place: Place,
  { sql, feed }: { readonly sql: Sql; readonly feed: Pick<ChangeFeed, 'subscribe'> },
): ShownToken {
  const mayShow = createHostCheck(place);
  let isRevoked = false;
  async function check(): Promise<void> {
    if (isRevoked || (await findToken(sql, token))) return;
    isRevoked = true;
    unsubscribe();
  }
  const unsubscribe = feed.subscribe((change) => {
    // After an outage of the database, the feed announces a change of all tables.
    if (concernsTokens(change)) check().catch(() => {});
  });
  return { token, for: (request) => (!isRevoked && mayShow(request) ? token : undefined) };
}

type HostCheck = (request: Parameters<ShownToken['for']>[0]) => boolean;

/**
 * Another site can have its own name resolve to this gateway (DNS rebinding), and its scripts could then read a token in a page.
 * So pages have the token only under names that no other site can point here: those of the machine itself, and HOST. If the gateway
 * listens on every address, no page has the token: clients other than browsers could come from anywhere, and send any
 * name.
 */
export function createHostCheck({ HOST, DEMO_ACCOUNT }: Place): HostCheck {
  if (DEMO_ACCOUNT === 'public') return () => true;
  if (isEverywhere(HOST)) return () => false;
  const host = canonicalHost(HOST);
  const isOwn = (authority: string) => {
    const name = nameIn(authority);
    return name === host || isOwnName(name);
  };
  return ({ headers, url = '' }) => {
    // A target in absolute form names a host as well (RFC 9112, section 3.2.2).
    const inTarget = /^[a-z][a-z\d+.-]*:\/\/([^/?#]*)/i.exec(url)?.[1];
    return isOwn(headers.host ?? '') && (inTarget === undefined || isOwn(inTarget));
  };
}
