/** What a view shows: the result of a query, now and after every change. */

import type { TypedDocumentNode } from '@graphql-typed-document-node/core';
import type { AnyVariables, CombinedError } from '@urql/core';
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
  const [{ data, error, fetching }] = useQuery({
    query: document,
    variables,
    context: live,
  });
  const last = useRef<Data | undefined>(undefined);
  if (data !== undefined && !fetching) last.current = data;
  return { data: data ?? last.current, error, isPending: fetching };
}
