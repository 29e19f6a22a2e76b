/**
 * Finds the document that a request wants to run. The request sends it, or names a persisted operation of the file, or the
 * hash of a query that the viewer's clients have registered.
 */

import { hash as digest } from 'node:crypto';
import { GraphQLError } from 'graphql';
import type { Viewer } from '../auth/viewer.ts';
import type { Config } from '../config/config.ts';
import type { ErrorCode } from '../errors.ts';
import type { Documents } from './documents.ts';
import type { PersistedFile } from './persistedFile.ts';
import { createRegisteredQueries, type RegisteredQueries } from './registeredQueries.ts';
import { requestError, unreadableRequest } from './requestErrors.ts';

/** The parameters of a request that say which document to run. Clients name an id in two ways. */
export interface DocumentParameters {
  readonly query?: unknown;
  readonly documentId?: unknown;
  readonly extensions?: unknown;
}

export interface PersistedOperations {
  /** Changes when ids may stand for other documents than before, so that cached responses must not be sent for them. */
  readonly generation: number;
  /**
   * The document that a request sends or names, an error if it may not, or undefined if it does neither. A query that comes
   * with its hash is registered: from then on the same viewer can name it by the hash.
   */
  textFor(request: DocumentParameters, viewer: Pick<Viewer, 'id'> | null): string | GraphQLError | undefined;
  /**
   * Whether a request sends a query to have it registered. Its response must not be cached: when the query is evicted, the
   * client sends it again, and that request has to get here to register it.
   */
  registers(request: DocumentParameters): boolean;
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
  const isAutomatic = !only;

  function register(query: string, hash: string, { id }: Pick<Viewer, 'id'>): string | GraphQLError {
    if (registered.find(id, hash) === query) return query;
    const actual = digest('sha256', query, 'hex');
    if (hash !== actual)
      return unreadableRequest(
        `extensions.persistedQuery.sha256Hash is not that of the query, which is ${actual}`,
      );
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
      if (documentId != null) return findById(file, documentId);
      const hash = hashIn(extensions);
      if (typeof hash === 'string') return byHash(hash, viewer);
      return hash ?? (only ? requestError(onlyPersisted) : undefined);
    },

    registers: (request) =>
      isAutomatic && typeof queryIn(request) === 'string' && hashIn(request.extensions) !== undefined,
  };
}

/** The document of the file that has the id. */
function findById(file: Pick<PersistedFile, 'textOf'>, id: unknown): string | GraphQLError {
  if (typeof id !== 'string') return requestError('documentId must be a string');
  const text = file.textOf(id);
  return (
    text ?? requestError(`There is no persisted operation with the id ${JSON.stringify(id.slice(0, 100))}`)
  );
}

/** The query of a request. An empty one beside an id counts as none: some clients have to send one. */
const queryIn = ({ query, documentId, extensions }: DocumentParameters): unknown =>
  query === '' && (documentId != null || hashIn(extensions) !== undefined) ? undefined : query;

/** The hash by which a request names a query, an error if it is malformed, or undefined if there is none. */
function hashIn(extensions: unknown): string | GraphQLError | undefined {
  if (extensions == null || typeof extensions !== 'object' || !('persistedQuery' in extensions))
    return undefined;
  const given = extensions.persistedQuery;
  if (given == null) return undefined;
  if (typeof given !== 'object' || !('sha256Hash' in given) || typeof given.sha256Hash !== 'string')
    return unreadableRequest('extensions.persistedQuery must have a sha256Hash, which is a string');
  // Clients of trusted documents may leave the version out.
  if ('version' in given && given.version !== 1)
    return unreadableRequest('extensions.persistedQuery.version must be 1: there is no other');
  return given.sha256Hash;
}

/**
 * An error after which the client sends the query. Apollo Client and urql recognise it by its code or its message. The
 * status is that of Apollo Server, since other clients recognise the error by that as well.
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
