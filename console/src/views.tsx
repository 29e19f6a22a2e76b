/** The views by their paths, and what is shown where there is none. */

import type { FunctionComponent } from 'preact';
import { useEffect, useErrorBoundary, useRef } from 'preact/hooks';
import { lazy, Route, Router, useLocation } from 'preact-iso';
import { Overview } from './overview/overview.tsx';
import { View } from './parts/view.tsx';

const loads = {
  programs: () => import('./programs/programs.tsx'),
  program: () => import('./programs/program.tsx'),
  history: () => import('./history/history.tsx'),
  session: () => import('./history/session.tsx'),
  locks: () => import('./locks/locks.tsx'),
  lock: () => import('./locks/lock.tsx'),
};

const Programs = lazy(() => loads.programs().then(({ Programs }) => Programs, unavailable));
const Program = lazy(() => loads.program().then(({ Program }) => Program, unavailable));
const History = lazy(() => loads.history().then(({ History }) => History, unavailable));
const Session = lazy(() => loads.session().then(({ Session }) => Session, unavailable));
const Locks = lazy(() => loads.locks().then(({ Locks }) => Locks, unavailable));
const Lock = lazy(() => loads.lock().then(({ Lock }) => Lock, unavailable));

/**
 * Loads what the other views need, so that they are there at once, also while the gateway is not: one after the other, while
 * nothing else is to be done. What cannot be loaded now is when it is shown, or with the next connection.
 * @param signal aborted when the gateway is away.
 */
export async function loadViews(signal: AbortSignal): Promise<void> {
  for (const load of Object.values(loads)) {
    await untilIdle();
    if (signal.aborted) return;
    await load();
  }
}

/** In milliseconds: what is never idle gets its views nevertheless. */
const longestUntilIdle = 1_000;

function untilIdle(): Promise<void> {
  return new Promise((resolve) => {
    // Safari has no such callback.
    if (typeof requestIdleCallback === 'undefined') setTimeout(resolve);
    else requestIdleCallback(() => resolve(), { timeout: longestUntilIdle });
  });
}

export function Views() {
  const { url } = useLocation();
  const broken = useRef<string>(undefined);
  const [error, reset] = useErrorBoundary((problem) => {
    broken.current = url;
    reportError(problem);
  });
  useEffect(() => {
    if (error && broken.current !== url) reset();
  }, [error, url]);
  if (error) return <Broken />;
  return (
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
  );
}

const NotFound = () => (
  <View title="Nothing is here" sources={[]}>
    <p>
      The <a href="/console">overview</a> is where most things are found.
    </p>
  </View>
);

const Broken = () => (
  <View title="This view does not work" sources={[]}>
    <p>
      Something went wrong in it. <a href="/console">To the overview</a>
    </p>
  </View>
);

/** In place of a view that could not be loaded: the gateway is away, or another version of it has come since. */
const Unavailable: FunctionComponent = () => (
  <View title="This view could not be loaded" sources={[]}>
    <p>The gateway did not give it. It may be away for a moment, or another version of it has come.</p>
    <button type="button" class="main" onClick={() => location.reload()}>
      Load the page again
    </button>
  </View>
);
const unavailable = () => Unavailable;
