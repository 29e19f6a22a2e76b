/** The root component: the form to sign in, or the views once a user has signed in. */

import { Provider } from '@urql/preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { LocationProvider, useLocation } from 'preact-iso';
import { AccountMenu } from './accountMenu.tsx';
import { type Connection, createApiClient } from './api/client.ts';
import { forgetDemoToken, readDemoToken } from './page.ts';
import { ConnectionNote } from './parts/connectionNote.tsx';
import { ThemeChoice } from './parts/themeChoice.tsx';
import { base, home } from './paths.ts';
import { forgetToken, readToken, storeToken } from './session.ts';
import { SignIn } from './signIn.tsx';
import { loadViews, Views } from './views.tsx';

/** The links of the navigation: path and name. */
const links = [
  [base, 'Overview'],
  [`${base}/programs`, 'Programs'],
  [`${base}/history`, 'History'],
  [`${base}/locks`, 'Locks'],
  [`${base}/settings`, 'Settings'],
] as const;

export function App() {
  const [token, setToken] = useState(readToken);
  const [rejection, setRejection] = useState<string>();

  function signIn(newToken: string) {
    storeToken(newToken);
    setRejection(undefined);
    setToken(newToken);
  }
  function signOut(reason?: string) {
    // The settings forget the token before they revoke it.
    const isRevokedHere = readToken() === undefined;
    setRejection(isRevokedHere ? undefined : reason);
    if ((isRevokedHere || reason !== undefined) && token === readDemoToken()) forgetDemoToken();
    forgetToken();
    setToken(undefined);
  }
  return token === undefined ? (
    <SignIn rejection={rejection} onToken={signIn} />
  ) : (
    <LocationProvider scope={base}>
      <SignedIn key={token} token={token} onSignOut={signOut} />
    </LocationProvider>
  );
}

interface SignedInProps {
  token: string;
  /** @param reason why the gateway rejects the token; undefined if the user has signed out. */
  onSignOut(reason?: string): void;
}

function SignedIn({ token, onSignOut }: SignedInProps) {
  const [connection, setConnection] = useState<Connection>({ state: 'connecting' });
  const [outage, outageChanged] = useState<string>();
  const client = useMemo(
    () =>
      createApiClient(token, { connectionChanged: setConnection, outageChanged, tokenRejected: onSignOut }),
    [token],
  );
  useEffect(() => client.close, [client]);
  const isOpen = connection.state === 'open';
  useEffect(() => {
    // The view that is shown first loads before the others.
    if (!isOpen) return;
    const leaving = new AbortController();
    loadViews(leaving.signal).catch(() => {});
    return () => leaving.abort();
  }, [isOpen]);
  return (
    <Provider value={client.urql}>
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <header>
        <a class="name" href={home}>
          Dovetail
        </a>
        <Navigation />
        <ThemeChoice />
        <AccountMenu onSignOut={() => onSignOut()} />
      </header>
      <ConnectionNote connection={connection} outage={outage} />
      <main id="content" tabIndex={-1}>
        <Views onSignOut={() => onSignOut()} />
      </main>
    </Provider>
  );
}

function Navigation() {
  const { path } = useLocation();
  return (
    <nav aria-label="Views">
      {links.map(([href, name]) => {
        const isCurrent = href === base ? path === href : path.startsWith(href);
        return (
          <a key={href} href={href} aria-current={isCurrent ? 'page' : undefined}>
            {name}
          </a>
        );
      })}
    </nav>
  );
}
