/** The form for a new token, and its secret, which is shown once. */

import { useClient } from '@urql/preact';
import type { TargetedSubmitEvent } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { TokenScope } from '../../generated/graphql.ts';
import { messageOf } from '../parts/loaded.tsx';
import { createApiToken } from './queries.ts';

/** Each choice of the form, with its scopes. */
const choices: readonly (readonly [name: string, scopes: TokenScope[], what: string])[] = [
  ['Read', ['READ'], 'See your data'],
  ['Activate', ['READ', 'ACTIVATE'], 'Also activate programs'],
  ['Manage', ['READ', 'ACTIVATE', 'MANAGE'], 'Also create and revoke tokens'],
];

interface Created {
  readonly id: string;
  readonly name: string;
  /** Removed when it is not shown any more: Preact holds on to the properties of elements that were removed. */
  secret?: string;
}

interface NewTokenProps {
  /** Whether the account has as many tokens as it may have. */
  isFull: boolean;
  /** The id of the token that was revoked last. */
  revoked: string | undefined;
}

export function NewToken({ isFull, revoked }: NewTokenProps) {
  const [created, setCreated] = useState<Created>();
  const [isDone, setDone] = useState(false);
  function done() {
    setCreated(undefined);
    setDone(true);
  }
  if (created && created.id !== revoked) return <Secret of={created} onDone={done} />;
  return <Form isFull={isFull} takesFocus={isDone} onCreated={setCreated} />;
}

interface FormProps {
  isFull: boolean;
  /** Whether it stands where the element with the focus was. */
  takesFocus: boolean;
  onCreated(created: Created): void;
}

function Form({ isFull, takesFocus, onCreated }: FormProps) {
  const client = useClient();
  const first = useRef<HTMLInputElement>(null);
  const last = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (takesFocus) first.current?.focus();
  }, []);
  const [problem, setProblem] = useState<string>();
  const [isUnderway, setUnderway] = useState(false);

  async function submit(event: TargetedSubmitEvent<HTMLFormElement>) {
    event.preventDefault();
    if (isUnderway || isFull) return;
    const entered = new FormData(event.currentTarget);
    const day = String(entered.get('expires'));
    const variables = {
      name: String(entered.get('name')),
      scopes: choices[Number(entered.get('scopes'))]?.[1] ?? ['READ'],
      ...(day !== '' && { expiresAt: endOf(day) }),
    };
    setUnderway(true);
    setProblem(undefined);
    const { data, error } = await client.mutation(createApiToken, variables).toPromise();
    setUnderway(false);
    const payload = data?.createApiToken;
    if (payload) onCreated({ ...payload.token, secret: payload.secret });
    else setProblem(error ? messageOf(error) : 'It was not created.');
  }
  return (
    <form class="new-token" onSubmit={submit}>
      <label>
        Name
        <input
          ref={first}
          name="name"
          autoComplete="off"
          maxLength={100}
          placeholder="What it is for, such as Dashboard"
        />
      </label>
      <fieldset class="choice">
        <legend>Scope</legend>
        {choices.map(([name, , what], index) => (
          <label key={name}>
            <input type="radio" name="scopes" value={index} defaultChecked={index === 0} />
            <b>{name}</b>
            <span class="hint">{what}</span>
          </label>
        ))}
      </fieldset>
      <div>
        <label for="expires">Expires</label>
        <div class="expires">
          <input
            ref={last}
            id="expires"
            type="date"
            name="expires"
            max="2999-12-31"
            aria-describedby="expires-hint"
          />
          {presets.map(([name, days]) => (
            <button
              key={name}
              type="button"
              onClick={() => {
                if (last.current) last.current.value = dayAfter(days);
              }}
            >
              {name}
            </button>
          ))}
        </div>
        <span id="expires-hint" class="hint">
          At the end of that day. Leave empty for no expiry.
        </span>
      </div>
      {problem !== undefined && (
        <p class="note bad" role="alert">
          {problem}
        </p>
      )}
      {isFull && <p class="note">You have five tokens. To create another, revoke one first.</p>}
      <button type="submit" class="main" disabled={isFull} aria-disabled={isUnderway}>
        {isUnderway ? 'Creating…' : 'Create token'}
      </button>
    </form>
  );
}

const presets = [
  ['7 days', 7],
  ['30 days', 30],
  ['90 days', 90],
  ['1 year', 365],
] as const;

/** Such as `2026-02-17`, in the time zone of the browser. Swedes write days so. */
function dayAfter(days: number): string {
  const day = new Date();
  day.setDate(day.getDate() + days);
  return day.toLocaleDateString('sv');
}

/** The end of a day in the time zone of the browser. @param day such as `2026-02-17`. */
function endOf(day: string): string {
  const end = new Date(`${day}T00:00`);
  end.setDate(end.getDate() + 1);
  return end.toISOString();
}

interface SecretProps {
  of: Created;
  onDone(): void;
}

function Secret({ of: created, onDone }: SecretProps) {
  const { name } = created;
  const field = useRef<HTMLInputElement>(null);
  const [isCopied, setCopied] = useState(false);
  // Before the browser paints: the field is never seen empty.
  useLayoutEffect(() => {
    if (field.current) field.current.value = created.secret ?? '';
    field.current?.select();
    return () => {
      delete created.secret;
    };
  }, []);

  async function copy() {
    field.current?.select();
    // Without HTTPS, a browser has a clipboard on its own machine alone; there the text stays selected.
    await navigator.clipboard?.writeText(created.secret ?? '').then(
      () => setCopied(true),
      () => {},
    );
  }
  return (
    <div class="new-token">
      <p class="note good" role="status">
        “{name}” is created. Copy it now: it is not shown again.
      </p>
      <div class="secret">
        <input ref={field} readOnly aria-label={`Token ${name}`} />
        <button type="button" class="main" onClick={copy}>
          {isCopied ? 'Copied' : 'Copy'}
        </button>
      </div>
      <button type="button" onClick={onDone}>
        Done
      </button>
    </div>
  );
}
