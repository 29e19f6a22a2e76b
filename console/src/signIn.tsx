/** The form to sign in with an API token. */

import type { TargetedSubmitEvent } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { hasUserInteracted, readDemoToken } from './page.ts';
import { ThemeChoice } from './parts/themeChoice.tsx';
import { home } from './paths.ts';

interface SignInProps {
  /** Why the gateway rejected the previous token; undefined if it did not. */
  rejection: string | undefined;
  onToken(token: string): void;
}

export function SignIn({ rejection, onToken }: SignInProps) {
  const demo = readDemoToken();
  const [token, setToken] = useState('');
  const [id, hint, problem] = [useId(), useId(), useId()];
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    document.title = 'Sign in – Dovetail';
    // After signing out, or after a rejected token, the element that had the focus is gone.
    if (hasUserInteracted() || rejection !== undefined) input.current?.focus();
  }, []);

  function submit(event: TargetedSubmitEvent<HTMLFormElement>) {
    event.preventDefault();
    // A token may be pasted as it stands in a header.
    const entered = token.trim().replace(/^Bearer\s+/i, '');
    if (entered !== '') onToken(entered);
  }
  return (
    <>
      <header>
        <a class="name" href={home}>
          Dovetail
        </a>
        <ThemeChoice />
      </header>
      <main class="sign-in">
        <h1>Sign in</h1>
        <p>Your devices, programs, history and locks, live.</p>
        {rejection !== undefined && (
          <p id={problem} class="note bad" role="alert">
            {rejection.replace('Unauthorized: the token', 'That token')}.
          </p>
        )}
        <form class="card" onSubmit={submit}>
          <label for={id}>API token</label>
          <input
            ref={input}
            id={id}
            type="password"
            autoComplete="off"
            spellcheck={false}
            required
            pattern="\s*([Bb]earer\s+)?\S+\s*"
            title="A token is one word without spaces, such as dvt_…"
            aria-invalid={rejection !== undefined}
            aria-describedby={rejection === undefined ? hint : `${problem} ${hint}`}
            value={token}
            onInput={({ currentTarget }) => setToken(currentTarget.value)}
          />
          <p id={hint} class="hint">
            It is stored in this tab only, until you sign out or close it.
          </p>
          <button type="submit" class="main">
            Sign in
          </button>
          {demo !== undefined && <Demo onClick={() => onToken(demo)} />}
        </form>
        <p class="hint">
          No token yet? <a href={home}>The home page</a> says how to get one.
        </p>
      </main>
    </>
  );
}

function Demo({ onClick }: { onClick(): void }) {
  const hint = useId();
  return (
    <>
      <button type="button" aria-describedby={hint} onClick={onClick}>
        Look at the demo account
      </button>
      <p id={hint} class="hint">
        It has a year of invented data. You can change it.
      </p>
    </>
  );
}
