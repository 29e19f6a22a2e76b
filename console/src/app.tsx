/** The console as a whole: a form to sign in, or the views. */

import { Provider } from '@urql/preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { LocationProvider, lazy, Route, Router, useLocation } from 'preact-iso';
import { type Connection, createApiClient } from './api/client.ts';
import { Overview } from './overview/overview.tsx';
import { ConnectionNote } from './parts/connectionNote.tsx';
import { forgetToken, readToken, storeToken } from './session.ts';
import { SignIn } from './signIn.tsx';

const Programs = lazy(() => import('./programs/programs.tsx').then(({ Programs }) => Programs));
const Program = lazy(() => import('./programs/program.tsx').then(({ Program }) => Program));
const History = lazy(() => import('./history/history.tsx').then(({ History }) => History));
const Session = lazy(() => import('./history/session.tsx').then(({ Session }) => Session));
const Locks = lazy(() => import('./locks/locks.tsx').then(({ Locks }) => Locks));
const Lock = lazy(() => import('./locks/lock.tsx').then(({ Lock }) => Lock));

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
  const [connection, setConnection] = useState<Connection>('connecting');
  const client = useMemo(
    () => createApiClient(token, { connectionChanged: setConnection, refused: onEnd }),
    [token],
  );
  useEffect(() => client.close, [client]);
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
        <Router>
          <Route path="/console" component={Overview} />
          <Route path="/console/programs" component={Programs} />
          <Route path="/console/programs/:id" component={Program} />
          <Route path="/console/history" component={History} />
          <Route path="/console/history/:id" component={Session} />
          <Route path="/console/locks" component={Locks} />
          <Route path="/console/locks/:id" component={Lock} />
          <Route default component={NotFound} />
        </Router>
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

function NotFound() {
  return (
    <>
      <h1>Nothing is here</h1>
      <p>
        The <a href="/console">overview</a> is where most things are found.
      </p>
    </>
  );
}
