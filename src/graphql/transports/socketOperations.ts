/** The operations of a WebSocket that are in flight, by the ids that the client gave them. */

import { MessageType, type SubscribePayload } from 'graphql-ws';
import { messages } from '../../errors.ts';
import { endExchange } from '../../http/exchange.ts';
import type { HttpResponse } from '../../http/response.ts';
import type { Started } from './operations.ts';
import { type Reading, readResults } from './results.ts';
import type { Message, SocketWriter } from './socketWriter.ts';

export interface SocketOperationsOptions {
  write: SocketWriter['write'];
  /** Begins an operation. @param number counts the operations of the socket, from 1. */
  run(number: number, body: Buffer): Started;
  /** Called when an operation finds that the client's token is not valid any more. */
  onUnauthorized(): void;
  /** Called when another operation may begin. */
  onRoom(): void;
}

export interface SocketOperations {
  has(id: string): boolean;
  start(id: string, payload: SubscribePayload): void;
  /** Stops an operation, if there is one of that id: the client wants no more results of it. */
  complete(id: string): void;
  /** Whether no operation may begin now: too many run, or the client was told to try again later. */
  isFull(): boolean;
  /** Stops subscriptions, without a message to the client. Settles when the other operations have sent their results. */
  finish(): Promise<void>;
  /** Stops all operations. */
  stop(): void;
}

/** How many operations of a socket may run at a time, not counting subscriptions, which have a limit of their own. */
const mostRunning = 100;

/** How many milliseconds after a 429 the next operation of the client begins. */
const respite = 1_000;

interface Operation {
  readonly id: string;
  readonly started: Started;
  /** Set for a subscription that has begun. */
  reading?: Reading;
  isStopped: boolean;
}

export function createSocketOperations(options: SocketOperationsOptions): SocketOperations {
  const operations = new Map<string, Operation>();
  const running = new Set<Promise<void>>();
  let count = 0;
  let resting: NodeJS.Timeout | undefined;

  /** Frees the id for another operation. */
  function remove(operation: Operation): void {
    if (operations.get(operation.id) === operation) operations.delete(operation.id);
  }

  function stop(operation: Operation): void {
    const { started, reading } = operation;
    operation.isStopped = true;
    remove(operation);
    reading?.stop();
    // Nobody reads the result any more. A subscription that has begun counts as a success.
    endExchange(started.exchange, reading ? 200 : undefined);
  }

  function rest(): void {
    resting ??= setTimeout(() => {
      resting = undefined;
      options.onRoom();
    }, respite);
  }

  function stopAll(): void {
    clearTimeout(resting);
    for (const operation of operations.values()) stop(operation);
  }

  return {
    has: (id) => operations.has(id),
    isFull: () => resting !== undefined || running.size >= mostRunning,
    start(id, payload) {
      const operation = {
        id,
        started: options.run(++count, Buffer.from(JSON.stringify(payload))),
        isStopped: false,
      };
      operations.set(id, operation);
      const performed = perform(operation, { ...options, remove, rest }).finally(() => {
        running.delete(performed);
        options.onRoom();
      });
      running.add(performed);
    },
    complete(id) {
      const operation = operations.get(id);
      if (operation) stop(operation);
    },
    async finish() {
      for (const operation of operations.values()) if (operation.reading) stop(operation);
      await Promise.all(running);
      stopAll();
    },
    stop: stopAll,
  };
}

interface Surroundings extends Pick<SocketOperationsOptions, 'write' | 'onUnauthorized'> {
  remove(operation: Operation): void;
  /** Has the client's next operation wait. */
  rest(): void;
}

/** Settles when the result of an operation is sent, or a subscription has begun. */
async function perform(operation: Operation, surroundings: Surroundings): Promise<void> {
  const { id, started } = operation;
  const response = await started.response;
  if (!('stream' in response)) return respond(operation, response, surroundings);
  operation.reading = readResults(response, (result) => surroundings.write(messageOf(id, 'next', result)));
  if (operation.isStopped) operation.reading.stop();
  // A subscription lasts as long as the client wants, so nothing waits for its end.
  else void finish(operation, operation.reading, surroundings);
}

async function respond(
  operation: Operation,
  response: HttpResponse,
  { write, onUnauthorized, remove, rest }: Surroundings,
): Promise<void> {
  const { id, started, isStopped } = operation;
  const { status, body } = response;
  if (isStopped) return;
  const { exchange } = started;
  remove(operation);
  exchange.operation ??= response.operation;
  exchange.errorCode = response.errorCode;
  endExchange(exchange, status);
  if (status === 429) rest();
  if (status === 200) await write(messageOf(id, 'next', body), messageOf(id, 'complete'));
  else if (status === 401) onUnauthorized();
  else await write(errorMessage(id, errorsIn(response, exchange.headers)));
}

/** Tells the client how a subscription has ended. */
async function finish(
  operation: Operation,
  { ended }: Reading,
  { write, onUnauthorized, remove }: Surroundings,
): Promise<void> {
  const { id, started } = operation;
  const ending = await ended;
  if (ending === 'stopped') return;
  remove(operation);
  endExchange(started.exchange, 200);
  if (ending === 'revoked') onUnauthorized();
  else await write(ending === 'complete' ? messageOf(id, 'complete') : errorMessage(id, [hidden]));
}

/** @param payload its JSON text. */
function messageOf(id: string, type: 'next' | 'error' | 'complete', payload?: Uint8Array): Message {
  const head = `{"id":${JSON.stringify(id)},"type":"${type}"`;
  if (!payload) return `${head}}`;
  return () => Buffer.concat([Buffer.from(`${head},"payload":`), payload, Buffer.from('}')]);
}

interface ShownError {
  readonly message: string;
  readonly extensions?: Readonly<Record<string, unknown>>;
}

const hidden: ShownError = { message: messages.internal, extensions: { code: 'INTERNAL_SERVER_ERROR' } };

const errorMessage = (id: string, errors: readonly ShownError[]) =>
  messageOf(id, MessageType.Error, Buffer.from(JSON.stringify(errors)));

/** The errors of a response. Each gets `retryAfter` from the `Retry-After` header, which a message does not have. */
function errorsIn(
  { body, headers }: HttpResponse,
  others: Readonly<Record<string, string>>,
): readonly ShownError[] {
  const { errors = [hidden] }: { errors?: readonly ShownError[] } = JSON.parse(body.toString());
  const retryAfter = Number(headers['Retry-After'] ?? others['Retry-After']);
  if (Number.isNaN(retryAfter)) return errors;
  return errors.map((error) => ({ ...error, extensions: { retryAfter, ...error.extensions } }));
}
