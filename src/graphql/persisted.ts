/**
 * What a request asks to run: the document that it sends, or one that it names. Those that can be named are the persisted
 * operations of a file, and the queries that the viewer's clients have registered by their hashes.
 */

import { hash as digest } from 'node:crypto';
import { GraphQLError } from 'graphql';
import type { Viewer } from '../auth/viewer.ts';
import type { Config } from '../config.ts';
import type { ErrorCode } from '../errors.ts';
import type { Documents } from './documents.ts';
import type { PersistedFile } from './persistedFile.ts';
import { createRegisteredQueries, type RegisteredQueries } from './registeredQueries.ts';
import { requestError, unreadable } from './requestErrors.ts';

/** How a request says what to run: the parameters of GraphQL over HTTP, and the two ways in use to name an id. */
export interface Naming {
  readonly query?: unknown;
  readonly documentId?: unknown;
  readonly extensions?: unknown;
}

export interface PersistedOperations {
  /** Changes when an id may no longer stand for what it stood for: a response from before must not be sent for it. */
  readonly generation: number;
  /**
   * The document that a request sends or names, a reason why it must not, or undefined where it does neither. What it
   * sends together with its hash is found by the hash from then on, by the same viewer.
   */
  textFor(request: Naming, viewer: Pick<Viewer, 'id'> | null): string | GraphQLError | undefined;
  /**
   * Whether a request sends a query to have it registered. Its response must not be cached: if the query is forgotten
   * before the response is, the client sends it once more, and has to come through.
   */
  registers(request: Naming): boolean;
}

export interface PersistedOptions {
  readonly config: Config;
  readonly documents: Documents;
  readonly file: Pick<PersistedFile, 'generation' | 'textOf'>;
  readonly registered?: RegisteredQueries;
}

const onlyPersisted =
  'Only persisted operations are run: name one by documentId or extensions.persistedQuery.sha256Hash, and send no query';

export function createPersistedOperations({
  config,
  documents,
  file,
  registered = createRegisteredQueries(),
}: PersistedOptions): PersistedOperations {
  const only = config.PERSISTED_OPERATIONS === 'only';
  const isAutomatic = config.AUTOMATIC_PERSISTED_QUERIES === 'on' && !only;

  function register(query: string, hash: string, { id }: Pick<Viewer, 'id'>): string | GraphQLError {
    if (registered.find(id, hash) === query) return query;
    const actual = digest('sha256', query, 'hex');
    if (hash !== actual)
      return unreadable(`extensions.persistedQuery.sha256Hash is not that of the query, which is ${actual}`);
    if (canBeRun(query, documents)) registered.add(id, hash, query);
    return query;
  }

  function byHash(hash: string, viewer: Pick<Viewer, 'id'> | null): string | GraphQLError {
    const text = file.textOf(hash);
    if (text !== undefined) return text;
    if (!isAutomatic) return protocolError('PersistedQueryNotSupported', 'PERSISTED_QUERY_NOT_SUPPORTED');
    const known = viewer ? registered.find(viewer.id, hash) : undefined;
    return known ?? protocolError('PersistedQueryNotFound', 'PERSISTED_QUERY_NOT_FOUND');
  }

  return {
    get generation() {
      return file.generation;
    },

    textFor(request, viewer) {
      const { documentId, extensions } = request;
      const query = queryIn(request);
      if (only && query != null) return requestError(onlyPersisted);
      if (typeof query === 'string') {
        const hash = isAutomatic && viewer ? hashIn(extensions) : undefined;
        if (!viewer || typeof hash !== 'string') return hash ?? query;
        return register(query, hash, viewer);
      }
      if (query != null) return undefined;
      if (documentId != null) {
        if (typeof documentId !== 'string') return requestError('documentId must be a string');
        return (
          file.textOf(documentId) ??
          requestError(
            `There is no persisted operation with the id ${JSON.stringify(documentId.slice(0, 100))}`,
          )
        );
      }
      const hash = hashIn(extensions);
      if (typeof hash === 'string') return byHash(hash, viewer);
      return hash ?? (only ? requestError(onlyPersisted) : undefined);
    },

    registers: (request) =>
      isAutomatic && typeof queryIn(request) === 'string' && hashIn(request.extensions) !== undefined,
  };
}

/** The query of a request. Clients whose protocol wants one send it empty, beside the name of an operation. */
const queryIn = ({ query, documentId, extensions }: Naming): unknown =>
  query === '' && (documentId != null || hashIn(extensions) !== undefined) ? undefined : query;

/** The hash by which a request names a query, what is wrong with it, or undefined where there is none. */
function hashIn(extensions: unknown): string | GraphQLError | undefined {
  // Of most requests there is nothing more to look at.
  if (extensions == null || typeof extensions !== 'object' || !('persistedQuery' in extensions))
    return undefined;
  const given = extensions.persistedQuery;
  if (given == null) return undefined;
  if (typeof given !== 'object' || !('sha256Hash' in given) || typeof given.sha256Hash !== 'string')
    return unreadable('extensions.persistedQuery must have a sha256Hash, which is a string');
  // The ids of a manifest come without a version as well.
  if ('version' in given && given.version !== 1)
    return unreadable('extensions.persistedQuery.version must be 1: there is no other');
  return given.sha256Hash;
}

/**
 * An error that has a client send the query, as Apollo Client and urql know it by its code or its message. Its status is
 * that of Apollo Server: other clients take no error with another for one of this protocol.
 */
function protocolError(message: string, code: ErrorCode): GraphQLError {
  return new GraphQLError(message, { extensions: { code, http: { status: 200 } } });
}

function canBeRun(query: string, documents: Documents): boolean {
  try {
    documents.read(query);
    return true;
  } catch {
    return false;
  }
}
