/** A hook for live queries: it gives the current result, and another one after every change. */

import type { TypedDocumentNode } from '@graphql-typed-document-node/core';
import { type AnyVariables, type CombinedError, createRequest } from '@urql/core';
import { useQuery } from '@urql/preact';
import { useRef } from 'preact/hooks';
import { live } from './live.ts';

export interface LiveResult<Data> {
  /** The latest data for these variables; while they are pending, the data of the previous variables. */
  readonly data: Data | undefined;
  /** The error of the latest result for these variables. None is one that may be over soon: `ConnectionNote` says it for the whole page. */
  readonly error: CombinedError | undefined;
  /** Whether the result for these variables has not arrived yet. */
  readonly isPending: boolean;
}

/** @param document a query with one top-level field. */
export function useLive<Data, Variables extends AnyVariables>(
  document: TypedDocumentNode<Data, Variables>,
  variables: Variables,
): LiveResult<Data> {
  const [{ data, error, fetching, operation }] = useQuery({ query: document, variables, context: live });
  const { key } = createRequest(document, variables);
  const last = useRef<{ readonly key: number; readonly data: Data }>(undefined);
  // For one render after a change of the variables, `useQuery` still returns the result of the previous ones.
  const isPending = fetching || operation?.key !== key;
  if (isPending) return { data: last.current?.data, error: undefined, isPending };
  if (data != null) last.current = { key, data };
  // Data that was read before an error stays.
  return { data: last.current?.key === key ? last.current.data : undefined, error, isPending };
}
