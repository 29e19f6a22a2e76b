/**
 * Batches: several operations in one request. Each runs as if it came alone, so Yoga's own batches do not suit: they are one request
 * for the cache, the limits and the log.
 */

import { OperationTypeNode } from 'graphql';
import { unauthorized } from '../../auth/viewer.ts';
import type { Config } from '../../config/config.ts';
import type { BatchParts, Hooks } from '../../extensionPoints.ts';
import { hasTooManyValues, tooManyValues } from '../../graphql/limits.ts';
import { requestFailure, vary } from '../../graphql/overHttp.ts';
import { tooComplex } from '../../graphql/plugins/operation.ts';
import { failureResponse } from '../../http/errorResponse.ts';
import type { Exchange } from '../../http/exchange.ts';
import { isRecord } from '../../http/json.ts';
import { type HttpResponse, isResponse, jsonResponse } from '../../http/response.ts';
import type { BatchedOperation } from '../../http/task.ts';

/** How many operations a batch may have. */
const largestBatch = 10;

interface Settings extends Pick<Config, 'MAX_COMPLEXITY'> {
  readonly BATCHING: 'on' | 'off';
}

export const createRunBatch =
  ({ BATCHING, MAX_COMPLEXITY }: Settings): NonNullable<Hooks['runBatch']> =>
  async (exchange, { operations, read }, parts) => {
    const wrong = problemWith(operations, BATCHING === 'on');
    if (wrong !== undefined) return requestFailure(400, wrong);
    // The request itself has been counted as one.
    const rejected = parts.admit(operations.length - 1);
    if (rejected) return rejected;
    const found: BatchedOperation[] = [];
    for (const operation of operations) {
      const each = await read(operation);
      if (!each) return unauthorized(exchange);
      found.push(each.type === OperationTypeNode.SUBSCRIPTION ? asRejected : each);
    }
    const complexity = found.reduce((sum, each) => sum + each.complexity, 0);
    if (complexity > MAX_COMPLEXITY)
      return requestFailure(400, tooComplex('batch', complexity, MAX_COMPLEXITY));
    const responses = await runInOrder(exchange, found, parts.run);
    exchange.operation = 'batch';
    // Some may come from the cache, and others not.
    exchange.cache = undefined;
    return joined(responses);
  };

/** Why the whole batch is rejected; undefined if it is not. */
function problemWith(operations: readonly unknown[], isOn: boolean): string | undefined {
  const { length } = operations;
  if (length === 0) return 'The request body is an empty list; send an object with a query';
  const batch = `The request is a batch of ${length === 1 ? '1 operation' : `${length} operations`}`;
  if (!isOn) return `${batch}, and batches are not run (BATCHING=off); send each in a request of its own`;
  if (length > largestBatch) return `${batch}; at most ${largestBatch} are allowed`;
  const variables = operations.map((each) => (isRecord(each) ? each.variables : undefined));
  return hasTooManyValues(variables) ? tooManyValues : undefined;
}

const asRejected: BatchedOperation = {
  type: undefined,
  complexity: 0,
  task: requestFailure(400, 'A subscription cannot be part of a batch; send it in a request of its own'),
};

/**
 * Runs the operations. A mutation runs alone, after all before it. The others run concurrently.
 * @returns the responses in their order. An operation that fails has an error response.
 */
export async function runInOrder(
  exchange: Exchange,
  operations: readonly Pick<BatchedOperation, 'type' | 'task'>[],
  run: BatchParts['run'],
): Promise<HttpResponse[]> {
  async function respond({ task }: Pick<BatchedOperation, 'task'>): Promise<HttpResponse> {
    if (isResponse(task)) return task;
    try {
      const response = await run(task);
      if ('stream' in response) throw new Error('an operation of a batch cannot have a stream');
      return response;
    } catch (error) {
      return failureResponse(exchange, error);
    }
  }

  const responses: Promise<HttpResponse>[] = [];
  for (const operation of operations) {
    const isMutation = operation.type === OperationTypeNode.MUTATION;
    if (isMutation) await Promise.all(responses);
    const response = respond(operation);
    if (isMutation) await response;
    responses.push(response);
  }
  return Promise.all(responses);
}

/** GraphQL over HTTP has no batches, so its media type for responses does not suit. */
const joined = (responses: readonly HttpResponse[]): HttpResponse => ({
  ...jsonResponse(200, `[${responses.map(({ body }) => body.toString()).join()}]`, {
    'Cache-Control': 'no-store',
    Vary: vary,
  }),
  errorCode: responses.find(({ errorCode }) => errorCode !== undefined)?.errorCode,
});
