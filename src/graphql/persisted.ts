/** Persisted operations: those of a file, which requests name by their ids instead of sending them. */

import { readFileSync } from 'node:fs';
import { type GraphQLError, parse, print, separateOperations } from 'graphql';
import { z } from 'zod';
import type { Config } from '../config.ts';
import { errorText, SetupError } from '../errors.ts';
import type { Documents } from './documents.ts';
import { requestError } from './limits.ts';

/** How a request says what to run: the parameters of GraphQL over HTTP, and the two ways in use to name an id. */
export interface Naming {
  readonly query?: unknown;
  readonly documentId?: unknown;
  readonly extensions?: unknown;
}

export interface PersistedOperations {
  /** The document that a request sends or names, a reason why it must not, or undefined where it does neither. */
  textFor(request: Naming): string | GraphQLError | undefined;
}

/** As the client preset of GraphQL Code Generator and the Relay compiler write it, by id. */
const plainManifest = z.preprocess(
  // A record of zod's would leave out an id `__proto__`.
  (content) =>
    content instanceof Object && !Array.isArray(content) ? new Map(Object.entries(content)) : content,
  z.map(z.string(), z.string()),
);
/** As Apollo writes it. */
const apolloManifest = z
  .object({ operations: z.array(z.object({ id: z.string(), body: z.string() })) })
  .transform(({ operations }) => new Map(operations.map(({ id, body }) => [id, body])));
const manifest = z.union([apolloManifest, plainManifest]);

const byHash = z.object({ persistedQuery: z.object({ sha256Hash: z.string() }) });

/** @throws {SetupError} when the file cannot be read, or has an operation that could not be run. */
export function loadPersistedOperations(config: Config, documents: Documents): PersistedOperations {
  const { PERSISTED_OPERATIONS_FILE: path, PERSISTED_OPERATIONS } = config;
  const only = PERSISTED_OPERATIONS === 'only';
  if (only && path === undefined)
    throw new SetupError('PERSISTED_OPERATIONS=only needs PERSISTED_OPERATIONS_FILE, which names them.');
  const texts = path === undefined ? new Map<string, string>() : loadTexts(path, documents);

  return {
    textFor({ query, documentId, extensions }) {
      if (typeof query === 'string' && !only) return query;
      const named = documentId ?? byHash.safeParse(extensions).data?.persistedQuery.sha256Hash;
      if (query != null || named == null) {
        return only
          ? requestError(
              'Only persisted operations are run: name one by documentId or extensions.persistedQuery.sha256Hash, and send no query',
            )
          : undefined;
      }
      if (typeof named !== 'string') return requestError('documentId must be a string');
      return (
        texts.get(named) ??
        requestError(`There is no persisted operation with the id ${JSON.stringify(named.slice(0, 100))}`)
      );
    },
  };
}

function loadTexts(path: string, documents: Documents): Map<string, string> {
  try {
    const text = readFileSync(path, 'utf8');
    const texts = path.endsWith('.json') ? manifest.parse(JSON.parse(text)) : namedOperations(text);
    for (const [id, document] of texts) {
      try {
        documents.read(document);
      } catch (error) {
        const [first] = error instanceof AggregateError ? error.errors : [error];
        throw new Error(`${id} cannot be run: ${first.message}`);
      }
    }
    return texts;
  } catch (error) {
    throw new SetupError(`PERSISTED_OPERATIONS_FILE ${path} cannot be used: ${reasonOf(error)}`);
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof z.ZodError) return 'it is not a manifest of documents by id';
  const text = errorText(error);
  // That of a file goes on with the path, which is named already.
  return error instanceof Error && 'syscall' in error ? text.split(', ', 1).join() : text;
}

/** Each operation of a document with its fragments, by its name. */
function namedOperations(text: string): Map<string, string> {
  const operations = Object.entries(separateOperations(parse(text))).map(([name, document]) => {
    if (name === '') throw new Error('an operation has no name to be asked for by');
    return [name, print(document)] as const;
  });
  return new Map(operations);
}
