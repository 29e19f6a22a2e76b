/**
 * Finds the document that a request wants to run. The request sends it, names a persisted operation of the file, or names the
 * hash of a query that a client of the viewer has registered. The file is read at the start, and again after each change.
 */

import { hash as digest } from 'node:crypto';
import { readFileSync, statSync, unwatchFile, watchFile } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { GraphQLError, parse, print, separateOperations } from 'graphql';
import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import { z } from 'zod';
import type { Viewer } from '../auth/viewer.ts';
import type { Config } from '../config/config.ts';
import { type ErrorCode, errorText, SetupError } from '../errors.ts';
import { isRecord } from '../http/json.ts';
import type { Documents } from './execution.ts';
import { type OperationRequest, requestError, unreadableRequest } from './overHttp.ts';

/** The parameters of a request that say which document to run. Clients name an id in two ways. */
type DocumentParameters = Partial<Pick<OperationRequest, 'query' | 'documentId' | 'extensions'>>;

export type PersistedOperations = ReturnType<typeof createPersistedOperations>;

type UserRef = Pick<Viewer, 'id'>;

interface PersistedOptions {
  readonly config: Pick<Config, 'PERSISTED_OPERATIONS'>;
  readonly file: Pick<PersistedFile, 'operations'>;
}

/** How much memory the registered queries may take, in bytes. The memory of each is estimated, rather too high. */
const maxMemory = 64 * 1024 * 1024;
const memoryOf = (query: string) => 200 + 2 * query.length;

const onlyPersisted =
  'Only persisted operations are run: name one by documentId or extensions.persistedQuery.sha256Hash, and send no query';

export function createPersistedOperations({ config, file }: PersistedOptions) {
  const only = config.PERSISTED_OPERATIONS === 'only';
  /** The queries by their hashes (Apollo's automatic persisted queries). Each user finds only their own. */
  const registered = new LRUCache<string, string>({ maxSize: maxMemory, sizeCalculation: memoryOf });
  const keyOf = ({ id }: UserRef, hash: string) => `${id} ${hash}`;

  /** The hash with which a request sends its query to have it registered. */
  const hashBeside = (request: DocumentParameters) =>
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
    find(request: DocumentParameters, viewer: UserRef | null): string | GraphQLError | undefined {
      const query = queryIn(request);
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
    register(request: DocumentParameters, user: UserRef): void {
      const hash = hashBeside(request);
      if (typeof hash === 'string' && typeof request.query === 'string')
        registered.set(keyOf(user, hash), request.query);
    },

    /**
     * Whether a request sends a query to have it registered. Its response must not be cached: when the query is evicted, the
     * client sends it again, and that request has to get here to register it.
     */
    registers: (request: DocumentParameters): boolean => hashBeside(request) !== undefined,
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
function findById(file: PersistedOptions['file'], id: unknown): string | GraphQLError {
  if (typeof id !== 'string') return requestError('documentId must be a string');
  const text = file.operations.get(id);
  return (
    text ?? requestError(`There is no persisted operation with the id ${JSON.stringify(id.slice(0, 100))}`)
  );
}

/** The query of a request. An empty one beside an id counts as none: some clients have to send one. */
const queryIn = ({ query, documentId, extensions }: DocumentParameters) =>
  query === '' && (documentId != null || hashIn(extensions) !== undefined) ? undefined : query;

/** The hash by which a request names a query, an error if it is malformed, or undefined if there is none. */
function hashIn(extensions: DocumentParameters['extensions']): string | GraphQLError | undefined {
  const given = extensions?.persistedQuery;
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

export interface PersistedFile {
  /** How often its operations were replaced. After that an id may name another document, and a cached response be wrong. */
  readonly generation: number;
  /** The documents by their ids. */
  readonly operations: Operations;
}

interface PersistedFileOptions {
  readonly config: Config;
  readonly documents: Documents;
  readonly logger: Pick<Logger, 'info' | 'error'>;
  /** Aborted when the gateway closes: the file is no longer checked. */
  readonly closing: AbortSignal;
  /** How often the file is checked for changes, in milliseconds. */
  readonly interval?: number;
}

type Operations = ReadonlyMap<string, string>;

/** The format of GraphQL Code Generator's client preset and of the Relay compiler: texts by their ids. */
const plainManifest = z.preprocess(
  // `z.record` would leave out the id `__proto__`.
  (content) =>
    content instanceof Object && !Array.isArray(content) ? new Map(Object.entries(content)) : content,
  z.map(z.string(), z.string()),
);
/** The format of Apollo's manifests. */
const apolloManifest = z
  .object({ operations: z.array(z.object({ id: z.string(), body: z.string() })) })
  .transform(({ operations }) => new Map(operations.map(({ id, body }) => [id, body])));
const manifest = z.union([apolloManifest, plainManifest]);

/** @throws {SetupError} if the file cannot be read, or has an operation that cannot be run. */
export function openPersistedFile(options: PersistedFileOptions): PersistedFile {
  const { config, documents, logger, closing, interval = 1_000 } = options;
  const { PERSISTED_OPERATIONS_FILE: path } = config;
  const { operations, ...loaded } = loadPersistedOperations(config, documents);
  let { content } = loaded;
  const current = { generation: 0, operations };
  /** What is wrong with the file, as it was logged. */
  let problem = '';

  async function readAgain(file: string): Promise<void> {
    try {
      const found = textOf(file);
      if (found !== content) {
        const next = operationsIn(file, found);
        for (const [id, text] of next) {
          checkRunnable(id, text, documents);
          // Lets other work run in between: there may be thousands.
          await setImmediate();
        }
        content = found;
        current.operations = next;
        current.generation++;
        logger.info({ operations: next.size }, 'persisted operations were read again');
      }
      problem = '';
    } catch (error) {
      const { message } = problemWith(file, error);
      if (message !== problem) logger.error(`${message}; the operations that were read before stay`);
      problem = message;
    }
  }

  if (path !== undefined) {
    // One after the other, since otherwise an older state of the file could replace a newer one.
    let last = Promise.resolve();
    const reread = () => {
      last = last.then(() => readAgain(path));
    };
    // The file is read only when it has not changed for a while: it may still be written. `watchFile` looks it up by its name, and
    // so notices every kind of change: a write, a rename, a link with a new target, a write from another machine.
    const settled = setTimeout(reread, interval).unref();
    const waitUntilSettled = () => void settled.refresh();
    watchFile(path, { interval, persistent: false }, waitUntilSettled);
    closing.addEventListener('abort', () => {
      unwatchFile(path, waitUntilSettled);
      clearTimeout(settled);
    });
  }
  return current;
}

/** @throws {SetupError} if the file cannot be read, or has an operation that cannot be run. */
export function loadPersistedOperations(
  { PERSISTED_OPERATIONS_FILE: path, PERSISTED_OPERATIONS }: Config,
  documents: Documents,
): { readonly content: string; readonly operations: Operations } {
  if (PERSISTED_OPERATIONS === 'only' && path === undefined)
    throw new SetupError('PERSISTED_OPERATIONS=only needs PERSISTED_OPERATIONS_FILE, which names them.');
  if (path === undefined) return { content: '', operations: new Map() };
  try {
    const content = textOf(path);
    const operations = operationsIn(path, content);
    for (const [id, text] of operations) checkRunnable(id, text, documents);
    return { content, operations };
  } catch (error) {
    throw problemWith(path, error);
  }
}

function textOf(path: string): string {
  // Reading anything else, such as a pipe or a device, might never end.
  if (!statSync(path).isFile()) throw new Error('it is no file');
  return readFileSync(path, 'utf8');
}

function operationsIn(path: string, content: string): Operations {
  return path.endsWith('.json') ? manifest.parse(JSON.parse(content)) : namedOperations(content);
}

function checkRunnable(id: string, text: string, documents: Documents): void {
  const read = documents.read(text);
  if ('errors' in read) throw new Error(`${id} cannot be run: ${read.errors[0]?.message}`);
}

function problemWith(path: string, error: unknown): SetupError {
  return new SetupError(`PERSISTED_OPERATIONS_FILE ${path} cannot be used: ${problemIn(error)}`);
}

function problemIn(error: unknown): string {
  if (error instanceof z.ZodError) return 'it is not a manifest of documents by id';
  const text = errorText(error);
  // The messages of file errors end with the path, which is already in the message around them.
  return error instanceof Error && 'syscall' in error ? text.split(', ', 1).join() : text;
}

/** Splits a document into its operations, each with its fragments, by their names. */
function namedOperations(text: string): Operations {
  const operations = Object.entries(separateOperations(parse(text))).map(([name, document]) => {
    if (name === '') throw new Error('an operation has no name to be asked for by');
    return [name, print(document)] as const;
  });
  return new Map(operations);
}
