/** The console as a whole: a form to sign in, or the views. */

import { Provider } from '@urql/preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { LocationProvider, useLocation } from 'preact-iso';
import { type Connection, createApiClient } from './api/client.ts';
import { ConnectionNote } from './parts/connectionNote.tsx';
import { forgetToken, readToken, storeToken } from './session.ts';
import { SignIn } from './signIn.tsx';
import { loadViews, Views } from './views.tsx';

/** The views that the navigation leads to, by path. */
const places = [
  ['/console', 'Overview'],
  ['/console/programs', 'Programs'],
  ['/console/history', 'History'],
  ['/console/locks', 'Locks'],
] as const;

export function App() {
  const [token, setToken] = useState(readToken);
  const [refusal, setRefusal] = useState<string>();

  function signIn(given: string) {
    storeToken(given);
    setRefusal(undefined);
    setToken(given);
  }
  function signOut(reason?: string) {
    forgetToken();
    setRefusal(reason);
    setToken(undefined);
  }
  return token === undefined ? (
    <SignIn refusal={refusal} onToken={signIn} />
  ) : (
    <LocationProvider scope="/console">
      <SignedIn key={token} token={token} onEnd={signOut} />
    </LocationProvider>
  );
}

interface SignedInProps {
  token: string;
  /** @param reason why the gateway does not take the token any more; none when somebody has signed out. */
  onEnd(reason?: string): void;
}

function SignedIn({ token, onEnd }: SignedInProps) {
  const [connection, setConnection] = useState<Connection>({ state: 'connecting' });
  const client = useMemo(
    () => createApiClient(token, { connectionChanged: setConnection, refused: onEnd }),
    [token],
  );
  useEffect(() => client.close, [client]);
  const isOpen = connection.state === 'open';
  useEffect(() => {
    // The first view comes first.
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
        <a class="name" href="/">
          Dovetail
        </a>
        <Navigation />
        <button type="button" onClick={() => onEnd()}>
          Sign out
        </button>
      </header>
      <ConnectionNote connection={connection} />
      <main id="content" tabIndex={-1}>
        <Views />
      </main>
    </Provider>
  );
}

function Navigation() {
  const { path } = useLocation();
  return (
    <nav aria-label="Views">
      {places.map(([place, name]) => {
        const isHere = place === '/console' ? path === place : path.startsWith(place);
        return (
          <a key={place} href={place} aria-current={isHere ? 'page' : undefined}>
            {name}
          </a>
        );
      })}
    </nav>
  );
}
