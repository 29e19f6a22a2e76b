/** Batches: several operations in one request, as Apollo's BatchHttpLink sends them. Each runs as if it came alone. */

import { OperationTypeNode } from 'graphql';
import type { Viewer } from '../auth/viewer.ts';
import type { Config } from '../config/config.ts';
import { acceptedOf, readAccept } from '../http/accept.ts';
import type { Exchange } from '../http/exchange.ts';
import { isRecord, parseJson } from '../http/json.ts';
import type { HttpResponse } from '../http/response.ts';
import type { Batch, BatchPart } from '../http/task.ts';
import { type Execution, tooComplex } from './execution.ts';
import { hasTooManyValues, isRequestTooDeep, tooManyValues } from './limits.ts';
import { readRequest } from './request.ts';
import { requestFailure, unauthorizedFailure } from './requestFailure.ts';
import { graphqlType, jsonType, notAcceptable, vary } from './result.ts';
import type { Tasks } from './tasks.ts';

/** How many operations a batch may have. */
const largestBatch = 10;

export interface BatchOptions {
  readonly config: Pick<Config, 'BATCHING' | 'MAX_COMPLEXITY'>;
  readonly execution: Execution;
  /** The task of one operation, as if it were a request of its own. */
  readonly taskOf: Tasks['ofPrepared'];
}

/**
 * The batch in the body of a POST, or the response that says why it is rejected; undefined for a body that is no
 * list.
 */
type Batches = (exchange: Exchange, body: Buffer, viewer: Viewer | null) => Batch | HttpResponse | undefined;

export function createBatches(options: BatchOptions): Batches {
  const { BATCHING, MAX_COMPLEXITY } = options.config;

  return (exchange, body, viewer) => {
    const operations = readList(body);
    if (!operations) return undefined;
    const wrong = problemWith(operations, BATCHING === 'on');
    if (wrong !== undefined) return requestFailure(400, wrong);
    if (hasTooManyValues(operations.map((each) => (isRecord(each) ? each.variables : undefined))))
      return requestFailure(400, tooManyValues);
    if (!viewer) return unauthorizedFailure(exchange.request);
    const type = typeFor(exchange.request.headers.accept);
    if (type === undefined) return requestFailure(406, notAcceptable);
    return {
      size: operations.length,
      prepare() {
        exchange.operation = 'batch';
        const parts = operations.map((operation) => partOf(operation, options, exchange, viewer));
        const complexity = parts.reduce((sum, part) => sum + part.complexity, 0);
        return complexity > MAX_COMPLEXITY
          ? requestFailure(400, tooComplex('batch', complexity, MAX_COMPLEXITY))
          : parts;
      },
      join(responses) {
        exchange.operation = 'batch';
        return joined(responses, type);
      },
    };
  };
}

/** Why the whole batch is rejected; undefined if it is not. */
function problemWith({ length }: readonly unknown[], isOn: boolean): string | undefined {
  if (length === 0) return 'The request body is an empty list; send an object with a query';
  const batch = `The request is a batch of ${length === 1 ? '1 operation' : `${length} operations`}`;
  if (!isOn) return `${batch}, and batches are not run (BATCHING=off); send each in a request of its own`;
  return length > largestBatch ? `${batch}; at most ${largestBatch} are allowed` : undefined;
}

/** An operation of a batch, with its complexity. */
interface CountedPart extends BatchPart {
  readonly complexity: number;
}

function partOf(
  given: unknown,
  { execution, taskOf }: BatchOptions,
  exchange: Exchange,
  viewer: Viewer,
): CountedPart {
  if (!isRecord(given)) return notRun('An operation of a batch must be an object with a query');
  // JSON.stringify below calls itself for each level, and would run out of stack.
  if (isRequestTooDeep(given)) return notRun('The operation is nested too deeply');
  const request = readRequest(given);
  // A hash that is not registered yet is rejected now: if a later operation of the batch registered it, this one
  // would run without having been counted.
  const operation =
    request && execution.prepare(request, { viewer, authorization: undefined, mayWrite: true });
  const body = Buffer.from(JSON.stringify(given));
  const task = taskOf({ exchange, viewer, type: jsonType, body }, { request, operation });
  if (!operation || 'errors' in operation) return { isInOrder: false, task, complexity: 0 };
  const { type, complexity } = operation;
  if (type === OperationTypeNode.SUBSCRIPTION)
    return notRun('A subscription cannot be part of a batch; send it in a request of its own');
  return { isInOrder: type === OperationTypeNode.MUTATION, task, complexity };
}

const brace = '{'.charCodeAt(0);

/** The elements of a body that is a list in JSON; undefined for any other body. */
function readList(body: Buffer): readonly unknown[] | undefined {
  // Most bodies are objects, which need not be parsed here.
  if (body[0] === brace) return undefined;
  const list = parseJson(body.toString());
  return Array.isArray(list) ? list : undefined;
}

/** GraphQL over HTTP has no batches, so the response is `application/json` wherever the client accepts that. */
function typeFor(accept: string | undefined): string | undefined {
  const accepted = acceptedOf([jsonType, graphqlType], readAccept(accept));
  return accepted.includes(jsonType) ? jsonType : accepted[0];
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
