/** What a view shows: the result of a query, now and after every change. */

import type { TypedDocumentNode } from '@graphql-typed-document-node/core';
import { type AnyVariables, type CombinedError, createRequest } from '@urql/core';
import { useQuery } from '@urql/preact';
import { useRef } from 'preact/hooks';
import { live } from './live.ts';

export interface LiveResult<Data> {
  /** What was read last: for these variables, or while that is on its way for those before. */
  readonly data: Data | undefined;
  readonly error: CombinedError | undefined;
  /** Whether `data` is not, or not yet, for these variables. */
  readonly isPending: boolean;
}

/** @param document a query with one field at the top. */
export function useLive<Data, Variables extends AnyVariables>(
  document: TypedDocumentNode<Data, Variables>,
  variables: Variables,
): LiveResult<Data> {
  const { key } = createRequest(document, variables);
  const [{ data, error, fetching, operation }] = useQuery({ query: document, variables, context: live });
  const last = useRef<{ key: number; data: Data } | undefined>(undefined);
  // Other variables are asked with after they were rendered with: until then the result is that of those before.
  const isPending = fetching || operation?.key !== key;
  if (isPending) return { data: last.current?.data, error: undefined, isPending };
  if (data !== undefined) last.current = { key, data };
  else if (last.current?.key !== key) last.current = undefined;
  return { data: last.current?.data, error, isPending };
}
