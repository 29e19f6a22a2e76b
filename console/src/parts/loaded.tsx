/** Shows the result of a query: its data, its error, or that it is loading. */

import type { ComponentChildren } from 'preact';
import type { LiveResult } from '../api/useLive.ts';

interface LoadedProps<Data> {
  result: LiveResult<Data>;
  /** Renders the data. */
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

/** The message of the gateway, without the prefix that urql adds. */
export function messageOf({ graphQLErrors, networkError }: QueryError): string {
  if (graphQLErrors.length > 0) return [...new Set(graphQLErrors.map(({ message }) => message))].join(' ');
  // `fetch` throws a TypeError for a request without a response, with a different text in each browser.
  if (networkError instanceof TypeError) return 'The gateway cannot be reached.';
  return networkError?.message || 'Something went wrong.';
}

type QueryError = NonNullable<LiveResult<unknown>['error']>;

/** Stands where there is nothing to show, and says what would be there. */
export const Empty = ({ children }: { children: ComponentChildren }) => <p class="empty">{children}</p>;
