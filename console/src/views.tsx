/** The routes: which view each path shows, and what is shown for an unknown path or a view that fails. */

import type { FunctionComponent } from 'preact';
import { useEffect, useErrorBoundary, useRef } from 'preact/hooks';
import { lazy, Route, Router, useLocation } from 'preact-iso';
import { Overview } from './overview/overview.tsx';
import { View } from './parts/view.tsx';
import { base } from './paths.ts';

const loads = {
  programs: () => import('./programs/programs.tsx'),
  program: () => import('./programs/program.tsx'),
  history: () => import('./history/history.tsx'),
  session: () => import('./history/session.tsx'),
  locks: () => import('./locks/locks.tsx'),
  lock: () => import('./locks/lock.tsx'),
  settings: () => import('./settings/settings.tsx'),
};

const Programs = lazy(() => loads.programs().then(({ Programs }) => Programs, unavailable));
const Program = lazy(() => loads.program().then(({ Program }) => Program, unavailable));
const History = lazy(() => loads.history().then(({ History }) => History, unavailable));
const Session = lazy(() => loads.session().then(({ Session }) => Session, unavailable));
const Locks = lazy(() => loads.locks().then(({ Locks }) => Locks, unavailable));
const Lock = lazy(() => loads.lock().then(({ Lock }) => Lock, unavailable));
const Settings = lazy(() => loads.settings().then(({ Settings }) => Settings, unavailable));

/**
 * Loads the code of the other views, so that they open at once, even while the gateway is away. It loads one after the
 * other, while the browser is idle. A view that cannot be loaded now is loaded when it is opened, or after the next connection.
 * @param signal aborted when the connection to the gateway is lost.
 */
export async function loadViews(signal: AbortSignal): Promise<void> {
  for (const load of Object.values(loads)) {
    await untilIdle();
    if (signal.aborted) return;
    await load();
  }
}

/** In milliseconds: after this long, a browser that is never idle loads the views all the same. */
const maxIdleWait = 1_000;

function untilIdle(): Promise<void> {
  return new Promise((resolve) => {
    // Safari has no `requestIdleCallback`.
    if (typeof requestIdleCallback === 'undefined') setTimeout(resolve);
    else requestIdleCallback(() => resolve(), { timeout: maxIdleWait });
  });
}

export function Views({ onSignOut }: { onSignOut(): void }) {
  const { url } = useLocation();
  const failedUrl = useRef<string>(undefined);
  const [error, reset] = useErrorBoundary((problem) => {
    failedUrl.current = url;
    reportError(problem);
  });
  useEffect(() => {
    // At another address the error is over.
    if (error && failedUrl.current !== url) reset();
  }, [error, url]);
  if (error) return <Broken />;
  return (
    <Router>
      <Route path={base} component={Overview} />
      <Route path={`${base}/programs`} component={Programs} />
      <Route path={`${base}/programs/:id`} component={Program} />
      <Route path={`${base}/history`} component={History} />
      <Route path={`${base}/history/:id`} component={Session} />
      <Route path={`${base}/locks`} component={Locks} />
      <Route path={`${base}/locks/:id`} component={Lock} />
      <Route path={`${base}/settings`} component={Settings} onSignOut={onSignOut} />
      <Route default component={NotFound} />
    </Router>
  );
}

const NotFound = () => (
  <View title="Not found" sources={[]}>
    <p>
      There is no page at this address. The <a href={base}>overview</a> is where most things are found.
    </p>
  </View>
);

const Broken = () => (
  <View title="This view does not work" sources={[]}>
    <p>
      Something went wrong in it. <a href={base}>To the overview</a>
    </p>
  </View>
);

/** Shown when the code of a view could not be loaded: the gateway is away, or a new version of it has other files. */
const Unavailable: FunctionComponent = () => (
  <View title="This view could not be loaded" sources={[]}>
    <p>The gateway did not give it. It may be away for a moment, or another version of it has come.</p>
    <button type="button" class="main" onClick={() => location.reload()}>
      Load the page again
    </button>
  </View>
);
const unavailable = () => Unavailable;
