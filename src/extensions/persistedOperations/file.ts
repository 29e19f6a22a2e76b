/** The file of persisted operations. It is read at the start, and again after each change. */

import { readFileSync, statSync, unwatchFile, watchFile } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { type GraphQLSchema, parse, print, separateOperations } from 'graphql';
import type { Logger } from 'pino';
import { z } from 'zod';
import type { Config } from '../../config/config.ts';
import { errorText, SetupError } from '../../errors.ts';
import { createDocuments, type Documents } from '../../graphql/documents.ts';

interface PersistedFileOptions {
  readonly path: string;
  /** Reads the documents, to see whether they can be run. */
  readonly documents: Pick<Documents, 'read'>;
  readonly logger: Pick<Logger, 'info' | 'error'>;
  /** How often the file is checked for changes, in milliseconds. */
  readonly interval?: number;
}

/** Reads documents to check them. None is kept: the handler caches those that are run. */
export const documentsFor = (config: Config, schema?: GraphQLSchema): Pick<Documents, 'read'> => ({
  read: (text) => createDocuments(config, schema).read(text),
});

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
export async function openPersistedFile({ path, documents, logger, interval = 1_000 }: PersistedFileOptions) {
  let operations = await loadPersistedOperations(path, documents);
  let generation = 0;

  async function readAgain(): Promise<void> {
    try {
      operations = await loadPersistedOperations(path, documents);
      generation++;
      logger.info({ operations: operations.size }, 'persisted operations were read again');
    } catch (error) {
      logger.error(`${errorText(error)}; the operations that were read before stay`);
    }
  }

  // One after the other, since otherwise an older state of the file could replace a newer one.
  let last = Promise.resolve();
  const reread = () => {
    last = last.then(readAgain);
  };
  // It looks the file up by its name, and so notices every kind of change: a write, a rename, a link with a new target, a write from
  // another machine.
  watchFile(path, { interval, persistent: false }, reread);
  return {
    get generation() {
      return generation;
    },
    get operations() {
      return operations;
    },
    async close(): Promise<void> {
      unwatchFile(path, reread);
    },
  };
}

/** @throws {SetupError} if the file cannot be read, or has an operation that cannot be run. */
export async function loadPersistedOperations(
  path: string,
  documents: PersistedFileOptions['documents'],
): Promise<Operations> {
  try {
    // Reading anything else, such as a pipe or a device, might never end.
    if (!statSync(path).isFile()) throw new Error('it is no file');
    // Some editors begin a file with a byte order mark.
    const operations = operationsIn(path, readFileSync(path, 'utf8').replace(/^\uFEFF/, ''));
    for (const [id, text] of operations) {
      const read = documents.read(text);
      if ('errors' in read) throw new Error(`${id} cannot be run: ${read.errors[0]?.message}`);
      // Lets other work run in between: there may be thousands.
      await setImmediate();
    }
    return operations;
  } catch (error) {
    throw new SetupError(`PERSISTED_OPERATIONS_FILE ${path} cannot be used: ${problemIn(error)}`);
  }
}

function operationsIn(path: string, content: string): Operations {
  return path.endsWith('.json') ? manifest.parse(JSON.parse(content)) : namedOperations(content);
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
