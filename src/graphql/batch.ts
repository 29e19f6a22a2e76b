/** Batches: lists of operations in one request, as Apollo's BatchHttpLink sends them. Each is run as if it came alone. */

import { getOperationAST, OperationTypeNode } from 'graphql';
import Negotiator from 'negotiator';
import { problemOf, type Viewer } from '../auth/viewer.ts';
import type { Config } from '../config.ts';
import { challengeFor, unauthorizedMessage } from '../errors.ts';
import type { Exchange } from '../http/exchange.ts';
import type { HttpResponse } from '../http/response.ts';
import type { Batch, BatchPart, Task } from '../http/task.ts';
import type { Documents } from './documents.ts';
import { graphqlType, jsonType } from './fastPath.ts';
import { complexityOf } from './limits.ts';
import { isRecord, readJson } from './operations.ts';
import type { PersistedOperations } from './persisted.ts';
import { notAcceptable, requestFailure, vary } from './yogaWork.ts';

/** How many operations a batch may have. */
const largestBatch = 10;

export interface BatchOptions {
  readonly config: Pick<Config, 'MAX_COMPLEXITY'>;
  readonly documents: Documents;
  readonly persisted: PersistedOperations;
  /** A request of its own, whose response is to be of a media type. */
  taskOf(exchange: Exchange, body: Buffer, viewer: Viewer, type: string): Task;
}

/** The batch in the body of a POST, or why there is no response to it; undefined for a body that is no list. */
type Batches = (exchange: Exchange, body: Buffer, viewer: Viewer | null) => Batch | HttpResponse | undefined;

export function createBatches(options: BatchOptions): Batches {
  const { MAX_COMPLEXITY: most } = options.config;

  return (exchange, body, viewer) => {
    const operations = readList(body);
    if (!operations) return undefined;
    const { request } = exchange;
    if (!viewer) {
      const problem = problemOf(request.headers.authorization);
      return requestFailure(401, unauthorizedMessage(problem), challengeFor(problem), 'UNAUTHENTICATED');
    }
    const { length } = operations;
    if (length === 0)
      return requestFailure(400, 'The request body is an empty list; send from 1 to 10 operations');
    if (length > largestBatch)
      return requestFailure(
        400,
        `The request is a batch of ${length} operations; at most ${largestBatch} are allowed`,
      );
    const type = typeFor(request.headers.accept);
    if (type === undefined) return requestFailure(406, notAcceptable);
    return {
      size: length,
      prepare() {
        exchange.operation = 'batch';
        const parts = operations.map((operation) => partOf(operation, options, exchange, viewer));
        const complexity = parts.reduce((sum, part) => sum + part.complexity, 0);
        return complexity > most
          ? requestFailure(400, `The batch has a complexity of ${complexity}; at most ${most} is allowed`)
          : parts;
      },
      join(responses) {
        exchange.operation = 'batch';
        return joined(responses, type);
      },
    };
  };
}

/** A part, and what it adds to the complexity of its batch. */
interface CountedPart extends BatchPart {
  readonly complexity: number;
}

function partOf(
  given: unknown,
  { documents, persisted, taskOf }: BatchOptions,
  exchange: Exchange,
  viewer: Viewer,
): CountedPart {
  if (!isRecord(given) || Array.isArray(given))
    return notRun('An operation of a batch must be an object with a query');
  const text = persisted.textFor(given, viewer);
  const { kind, complexity } = typeof text === 'string' ? lookAt(text, given, documents) : unknown;
  if (kind === OperationTypeNode.SUBSCRIPTION)
    return notRun('A subscription cannot be part of a batch; send it in a request of its own');
  const task = taskOf(exchange, Buffer.from(JSON.stringify(given)), viewer, jsonType);
  return { isInOrder: kind === OperationTypeNode.MUTATION, task, complexity };
}

interface Look {
  readonly kind: OperationTypeNode | undefined;
  readonly complexity: number;
}

/** Of an operation that cannot be run there is nothing to know: its task says why. */
const unknown: Look = { kind: undefined, complexity: 0 };

function lookAt(
  text: string,
  { operationName, variables }: Readonly<Record<string, unknown>>,
  documents: Documents,
): Look {
  try {
    const document = documents.read(text);
    const operation = getOperationAST(
      document,
      typeof operationName === 'string' ? operationName : undefined,
    );
    if (!operation) return unknown;
    const complexity = complexityOf(document, operation, isRecord(variables) ? variables : {});
    return { kind: operation.operation, complexity };
  } catch {
    return unknown;
  }
}

/** The elements of a body that is a list in JSON. */
function readList(body: Buffer): readonly unknown[] | undefined {
  // Most bodies are none, and are not read twice.
  const start = body.subarray(0, 100).toString().trimStart();
  if (start !== '' && !start.startsWith('[')) return undefined;
  const list = readJson(body.toString());
  return Array.isArray(list) ? list : undefined;
}

/** GraphQL over HTTP knows no batches, so a list is plain JSON wherever a client takes that. */
function typeFor(accept: string | undefined): string | undefined {
  const negotiator = new Negotiator({ headers: { accept } });
  const [type] = [...negotiator.mediaTypes([jsonType]), ...negotiator.mediaTypes([graphqlType])];
  return type;
}

function joined(responses: readonly HttpResponse[], type: string): HttpResponse {
  const pieces = responses.flatMap(({ body }, index) => [Buffer.from(index === 0 ? '[' : ','), body]);
  const body = Buffer.concat([...pieces, Buffer.from(']')]);
  return {
    status: 200,
    headers: {
      'Content-Type': `${type}; charset=utf-8`,
      'Content-Length': body.length,
      'Cache-Control': 'no-store',
      Vary: vary,
    },
    body,
    errorCode: responses.find(({ errorCode }) => errorCode !== undefined)?.errorCode,
  };
}

function notRun(message: string): CountedPart {
  return { isInOrder: false, task: requestFailure(400, message), complexity: 0 };
}
