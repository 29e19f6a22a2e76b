/**
 * Finds the document that a request wants to run. The request sends it, names a persisted operation of the file, or names the
 * hash of a query that a client of the viewer has registered.
 */

import { hash as digest } from 'node:crypto';
import { GraphQLError } from 'graphql';
import { LRUCache } from 'lru-cache';
import type { Viewer } from '../auth/viewer.ts';
import type { Config } from '../config/config.ts';
import type { ErrorCode } from '../errors.ts';
import { isRecord } from '../http/json.ts';
import { requestError, unreadableRequest } from './overHttp.ts';

/** Operations that requests may name. */
export interface NamedOperations {
  /** How often they were replaced. After that an id may name another document, and a cached response be wrong. */
  readonly generation: number;
  /** The documents by their ids. */
  readonly operations: ReadonlyMap<string, string>;
}

/** The parameters of a request, none of which is checked. Clients name the id of a document in two ways. */
type Parameters = Readonly<Record<string, unknown>>;

export type PersistedOperations = ReturnType<typeof createPersistedOperations>;

type UserRef = Pick<Viewer, 'id'>;

type File = Pick<NamedOperations, 'operations'>;

/** How much memory the registered queries may take, in bytes. The memory of each is estimated, rather too high. */
const maxMemory = 64 * 1024 * 1024;
const memoryOf = (query: string) => 200 + 2 * query.length;

const onlyPersisted =
  'Only persisted operations are run: name one by documentId or extensions.persistedQuery.sha256Hash, and send no query';

export function createPersistedOperations(config: Pick<Config, 'PERSISTED_OPERATIONS'>, file: File) {
  const only = config.PERSISTED_OPERATIONS === 'only';
  /** The queries by their hashes (Apollo's automatic persisted queries). Each user finds only their own. */
  const registered = new LRUCache<string, string>({ maxSize: maxMemory, sizeCalculation: memoryOf });
  const keyOf = ({ id }: UserRef, hash: string) => `${id} ${hash}`;

  /** The hash with which a request sends its query to have it registered. */
  const hashBeside = (request: Parameters) =>
    !only && typeof queryIn(request) === 'string' ? hashIn(request.extensions) : undefined;

  function byHash(hash: string, viewer: UserRef | null): string | GraphQLError {
    const text = file.operations.get(hash);
    if (text !== undefined) return text;
    if (only) return protocolError('PersistedQueryNotSupported', 'PERSISTED_QUERY_NOT_SUPPORTED');
    const known = viewer ? registered.get(keyOf(viewer, hash)) : undefined;
    return known ?? protocolError('PersistedQueryNotFound', 'PERSISTED_QUERY_NOT_FOUND');
  }

  return {
    /**
     * The document that a request sends or names; an error if it may not, or does so wrongly; undefined if it does neither.
     * @param viewer null for an anonymous client, which has registered nothing.
     */
    find(request: Parameters, viewer: UserRef | null): string | GraphQLError | undefined {
      const query = queryIn(request);
      if (query != null && typeof query !== 'string') return unreadableRequest('query must be a string');
      if (only && query != null) return requestError(onlyPersisted);
      if (query != null) return (viewer && problemWithHash(hashBeside(request), query)) ?? query;
      if (request.documentId != null) return findById(file, request.documentId);
      const hash = hashIn(request.extensions);
      if (typeof hash === 'string') return byHash(hash, viewer);
      return hash ?? (only ? requestError(onlyPersisted) : undefined);
    },

    /**
     * Registers the query of a request, if it comes with its hash: from then on the same viewer can name it by the hash. The
     * query must be one that `find` gave, and that can be run.
     */
    register(request: Parameters, user: UserRef): void {
      const hash = hashBeside(request);
      if (typeof hash === 'string' && typeof request.query === 'string')
        registered.set(keyOf(user, hash), request.query);
    },

    /**
     * Whether a request sends a query to have it registered. Its response must not be cached: when the query is evicted, the
     * client sends it again, and that request has to get here to register it.
     */
    registers: (request: Parameters): boolean => hashBeside(request) !== undefined,
  };
}

/** The error about a hash that is not that of the query beside it, if there is one. */
function problemWithHash(hash: string | GraphQLError | undefined, query: string): GraphQLError | undefined {
  if (typeof hash !== 'string') return hash;
  const actual = digest('sha256', query, 'hex');
  return hash === actual
    ? undefined
    : unreadableRequest(`extensions.persistedQuery.sha256Hash is not that of the query, which is ${actual}`);
}

/** The document of the file that has the id. */
function findById(file: File, id: unknown): string | GraphQLError {
  if (typeof id !== 'string') return requestError('documentId must be a string');
  const text = file.operations.get(id);
  return (
    text ?? requestError(`There is no persisted operation with the id ${JSON.stringify(id.slice(0, 100))}`)
  );
}

/** The query of a request. An empty one beside an id counts as none: some clients have to send one. */
const queryIn = ({ query, documentId, extensions }: Parameters) =>
  query === '' && (documentId != null || hashIn(extensions) !== undefined) ? undefined : query;

/** The hash by which a request names a query, an error if it is malformed, or undefined if there is none. */
function hashIn(extensions: unknown): string | GraphQLError | undefined {
  const given = isRecord(extensions) ? extensions.persistedQuery : undefined;
  if (given == null) return undefined;
  if (!isRecord(given) || typeof given.sha256Hash !== 'string')
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
