/** What a view shows: the result of a query, now and after every change. */

import type { TypedDocumentNode } from '@graphql-typed-document-node/core';
import { type AnyVariables, type CombinedError, createRequest } from '@urql/core';
import { useQuery } from '@urql/preact';
import { useRef } from 'preact/hooks';
import { live } from './live.ts';

export interface LiveResult<Data> {
  /** What was read last: for these variables, or while that is on its way for those before. */
  readonly data: Data | undefined;
  /** What is wrong now, with these variables. */
  readonly error: CombinedError | undefined;
  /** Whether `data` is not, or not yet, for these variables. */
  readonly isPending: boolean;
}

/** @param document a query with one field at the top. */
export function useLive<Data, Variables extends AnyVariables>(
  document: TypedDocumentNode<Data, Variables>,
  variables: Variables,
): LiveResult<Data> {
  const [{ data, error, fetching, operation }] = useQuery({ query: document, variables, context: live });
  const { key } = createRequest(document, variables);
  const last = useRef<{ readonly key: number; readonly data: Data }>(undefined);
  // When the variables change, the result is that of those before for one moment more.
  const isPending = fetching || operation?.key !== key;
  if (isPending) return { data: last.current?.data, error: undefined, isPending };
  if (data != null) last.current = { key, data };
  // What was read before an error stays: it is how things were.
  return { data: last.current?.key === key ? last.current.data : undefined, error, isPending };
}
