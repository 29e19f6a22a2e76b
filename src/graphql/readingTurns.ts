/**
 * Turns for reading documents: to parse and validate one takes tens of milliseconds at worst, in which nothing else runs. The documents
 * of a user are read one after the other, each followed by a rest as long, so they delay no other user for long.
 */

import type { GraphQLError } from 'graphql';
import type { Recheck, Viewer } from '../auth/viewer.ts';
import { isRecord } from '../http/json.ts';
import { createUserQueue } from '../http/keyedQueue.ts';
import type { RequestContext } from './context.ts';
import type { Documents } from './documents.ts';
import type { PersistedOperations } from './persisted.ts';

/** What a request of a viewer sends or names: a document, or the error of one that names it wrongly; undefined if it does neither. */
export type Named = string | GraphQLError | undefined;

export function createReadInTurn(
  documents: Documents,
  persisted: Pick<PersistedOperations, 'find'>,
  recheck: Recheck,
) {
  const inTurn = createUserQueue();
  /**
   * Does work that begins by reading the document of a request: at once if the document is cached, or else when it is the user's turn.
   * The viewer is null for an anonymous client, or if the token has ended meanwhile.
   */
  return <Result>(
    params: unknown,
    { exchange, viewer }: Pick<RequestContext, 'exchange' | 'viewer'>,
    work: (viewer: Viewer | null, named: Named) => Result,
  ): Result | Promise<Result> => {
    const named = viewer && isRecord(params) ? persisted.find(params, viewer) : undefined;
    if (!viewer || typeof named !== 'string' || documents.has(named)) return work(viewer, named);
    // For a client that has left, nothing is read.
    return inTurn(viewer.id, async () =>
      work(exchange.isOver ? null : await recheck(exchange, viewer), named),
    );
  };
}
