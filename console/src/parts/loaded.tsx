/** What is shown of a result: what was read, or why there is nothing. */

import type { ComponentChildren } from 'preact';
import type { LiveResult } from '../api/useLive.ts';

interface LoadedProps<Data> {
  result: LiveResult<Data>;
  /** What is shown of the data. */
  children(data: Data): ComponentChildren;
}

export function Loaded<Data>({ result: { data, error, isPending }, children }: LoadedProps<Data>) {
  return (
    <>
      {error && (
        <p class="note bad" role="alert">
          {messageOf(error)}
        </p>
      )}
      {data === undefined || data === null ? isPending && <p class="hint">Loading…</p> : children(data)}
    </>
  );
}

/** What the gateway says, without the words that urql puts before it. */
export function messageOf({ graphQLErrors, networkError }: LiveError): string {
  if (graphQLErrors.length > 0) return [...new Set(graphQLErrors.map(({ message }) => message))].join(' ');
  // As browsers tell of a request without a response, each in other words.
  if (networkError instanceof TypeError) return 'The gateway cannot be reached.';
  return networkError?.message || 'Something went wrong.';
}

type LiveError = NonNullable<LiveResult<unknown>['error']>;

/** Where there is nothing to show, and what would be there. */
export const Empty = ({ children }: { children: ComponentChildren }) => <p class="empty">{children}</p>;
