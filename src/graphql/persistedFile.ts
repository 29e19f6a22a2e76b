/** The file of persisted operations: read at the start, and again whenever it has changed or SIGHUP asks for it. */

import { readFileSync, statSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { setImmediate } from 'node:timers/promises';
import { parse, print, separateOperations } from 'graphql';
import type { Logger } from 'pino';
import { z } from 'zod';
import type { Config } from '../config.ts';
import { errorText, SetupError } from '../errors.ts';
import type { Documents } from './documents.ts';

export interface PersistedFile {
  /** How often what it has was replaced. */
  readonly generation: number;
  /** The document with the id. */
  textOf(id: string): string | undefined;
  /** All of them, by their ids. */
  readonly operations: Operations;
}

export interface PersistedFileOptions {
  readonly config: Config;
  readonly documents: Documents;
  readonly logger: Pick<Logger, 'info' | 'error'>;
  /** Aborted when the gateway closes: the file is not looked at any longer. */
  readonly closing: AbortSignal;
  /** How often it is looked at, in milliseconds. */
  readonly interval?: number;
}

/** Documents by their ids. */
export type Operations = ReadonlyMap<string, string>;

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

/** @throws {SetupError} when the file cannot be read, or has an operation that could not be run. */
export function openPersistedFile(options: PersistedFileOptions): PersistedFile {
  const { config, documents, logger, closing, interval = 1_000 } = options;
  const { PERSISTED_OPERATIONS_FILE: path } = config;
  let { content, operations } = loadPersistedOperations(config, documents);
  let generation = 0;
  let hasFailed = false;

  async function readAgain(file: string, isAsked: boolean): Promise<void> {
    try {
      checkIsFile(file);
      const found = await readFile(file, 'utf8');
      const isChanged = found !== content;
      if (isChanged) {
        const next = operationsIn(file, found);
        for (const [id, text] of next) {
          checkRunnable(id, text, documents);
          // There may be thousands, and others wait for the processor.
          await setImmediate();
        }
        operations = next;
        content = found;
        generation++;
      }
      if (isChanged || isAsked || hasFailed)
        logger.info({ operations: operations.size }, 'persisted operations were read again');
      hasFailed = false;
    } catch (error) {
      hasFailed = true;
      logger.error(`${problemWith(file, error).message}; the operations that were read before stay`);
    }
  }

  if (path !== undefined) {
    // One after the other, or an older state of the file could replace a newer one.
    let last = Promise.resolve();
    const scheduleReread = (isAsked: boolean) => {
      last = last.then(() => readAgain(path, isAsked));
    };
    const reread = () => scheduleReread(true);
    process.on('SIGHUP', reread);
    const timer = setInterval(
      createWatch(path, () => scheduleReread(false)),
      interval,
    ).unref();
    closing.addEventListener('abort', () => {
      process.off('SIGHUP', reread);
      clearInterval(timer);
    });
  }
  return {
    get generation() {
      return generation;
    },
    get operations() {
      return operations;
    },
    textOf: (id) => operations.get(id),
  };
}

/**
 * Looks whether the file is another than it was, and still as it was at the look before: what is being written is left
 * alone until it is done. It asks for the file by its name each time, and so finds whatever stands there, however it came
 * (written, renamed, by way of a link that points elsewhere, from another machine). `fs.watch` is told of a part of that.
 */
function createWatch(path: string, onChange: () => void): () => Promise<void> {
  let seen: string | undefined;
  // Unlike any: it may have changed between the start's reading and the first look.
  let read: string | undefined;
  let isLooking = false;
  return async () => {
    // A disk that does not respond is asked once.
    if (isLooking) return;
    isLooking = true;
    const now = await stat(path, { bigint: true }).then(
      ({ dev, ino, size, mtimeNs, ctimeNs }) => [dev, ino, size, mtimeNs, ctimeNs].join(),
      errorText,
    );
    isLooking = false;
    if (now === seen && now !== read) {
      read = now;
      onChange();
    }
    seen = now;
  };
}

/** @throws {SetupError} when the file cannot be read, or has an operation that could not be run. */
export function loadPersistedOperations(
  { PERSISTED_OPERATIONS_FILE: path, PERSISTED_OPERATIONS }: Config,
  documents: Documents,
): { readonly content: string; readonly operations: Operations } {
  if (PERSISTED_OPERATIONS === 'only' && path === undefined)
    throw new SetupError('PERSISTED_OPERATIONS=only needs PERSISTED_OPERATIONS_FILE, which names them.');
  if (path === undefined) return { content: '', operations: new Map() };
  try {
    checkIsFile(path);
    const content = readFileSync(path, 'utf8');
    const operations = operationsIn(path, content);
    for (const [id, text] of operations) checkRunnable(id, text, documents);
    return { content, operations };
  } catch (error) {
    throw problemWith(path, error);
  }
}

/** To read a pipe, or a device, might never end. */
function checkIsFile(path: string): void {
  if (!statSync(path).isFile()) throw new Error('it is no file');
}

function operationsIn(path: string, content: string): Operations {
  return path.endsWith('.json') ? manifest.parse(JSON.parse(content)) : namedOperations(content);
}

function checkRunnable(id: string, text: string, documents: Documents): void {
  try {
    documents.read(text);
  } catch (error) {
    const [first] = error instanceof AggregateError ? error.errors : [error];
    throw new Error(`${id} cannot be run: ${first.message}`);
  }
}

function problemWith(path: string, error: unknown): SetupError {
  return new SetupError(`PERSISTED_OPERATIONS_FILE ${path} cannot be used: ${reasonOf(error)}`);
}

function reasonOf(error: unknown): string {
  if (error instanceof z.ZodError) return 'it is not a manifest of documents by id';
  const text = errorText(error);
  // That of a file goes on with the path, which is named already.
  return error instanceof Error && 'syscall' in error ? text.split(', ', 1).join() : text;
}

/** Each operation of a document with its fragments, by its name. */
function namedOperations(text: string): Operations {
  const operations = Object.entries(separateOperations(parse(text))).map(([name, document]) => {
    if (name === '') throw new Error('an operation has no name to be asked for by');
    return [name, print(document)] as const;
  });
  return new Map(operations);
}
