/**
 * Batches: several operations in one request, as Apollo's BatchHttpLink sends them. Each runs as if it came alone, so Yoga's own batches
 * do not suit: they are one request for the cache, the limits and the log.
 */

import { GraphQLError, OperationTypeNode } from 'graphql';
import { unauthorized } from '../auth/unauthorized.ts';
import type { Viewer } from '../auth/viewer.ts';
import type { Config } from '../config/config.ts';
import type { Exchange } from '../http/exchange.ts';
import { isRecord, parseJson } from '../http/json.ts';
import { acceptedOf } from '../http/request.ts';
import type { HttpResponse } from '../http/response.ts';
import type { Batch, BatchPart, Task } from '../http/task.ts';
import type { CheckedOperation, RequestContext } from './context.ts';
import type { Documents } from './documents.ts';
import {
  type Accepted,
  graphqlType,
  jsonType,
  notAcceptable,
  requestFailure,
  responseOf,
  vary,
} from './overHttp.ts';
import { measure, tooComplex } from './plugins/complexity.ts';
import type { Named, ReadInTurn } from './readingTurns.ts';
import { hasTooManyValues, tooManyValues } from './values.ts';

/** What the handler does with the parts. */
interface Tasks {
  readonly documents: Documents;
  readonly readInTurn: ReadInTurn;
  /** Finds the operation of a request. */
  resolve(params: unknown, viewer: Viewer, named: Named): CheckedOperation | GraphQLError | undefined;
  of(
    received: Pick<RequestContext, 'exchange' | 'viewer' | 'accepted'>,
    given: { readonly content: unknown },
  ): Task;
}

/** How many operations a batch may have. */
const largestBatch = 10;

/**
 * The batch in the body of a POST, or the response that rejects it; undefined for a body that is
 * no list.
 */
export function readBatch(
  { BATCHING, MAX_COMPLEXITY }: Pick<Config, 'BATCHING' | 'MAX_COMPLEXITY'>,
  tasks: Tasks,
  { exchange, body, viewer }: { exchange: Exchange; body: Buffer; viewer: Viewer | null },
): Batch | HttpResponse | undefined {
  const operations = parseJson(body.toString());
  if (!Array.isArray(operations)) return undefined;
  const wrong = problemWith(operations, BATCHING === 'on');
  if (wrong !== undefined) return requestFailure(400, wrong);
  if (!viewer) return unauthorized(exchange);
  const type = typeFor(exchange.request.headers.accept);
  if (type === undefined) return requestFailure(406, notAcceptable);
  return {
    size: operations.length,
    async prepare() {
      exchange.operation = 'batch';
      const parts: CountedPart[] = [];
      for (const operation of operations) {
        const part = await tasks.readInTurn(
          operation,
          { exchange, viewer },
          (current, named) =>
            current &&
            partOf(operation, tasks.resolve(operation, current, named), tasks, { exchange, viewer: current }),
        );
        if (!part) return unauthorized(exchange);
        parts.push(part);
      }
      const complexity = parts.reduce((sum, part) => sum + part.complexity, 0);
      return complexity <= MAX_COMPLEXITY
        ? parts
        : requestFailure(400, tooComplex('batch', complexity, MAX_COMPLEXITY));
    },
    join(responses) {
      exchange.operation = 'batch';
      return joined(responses, type);
    },
  };
}

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

/** An operation of a batch, with its complexity. It is 0 for a rejected operation, which is never executed. */
interface CountedPart extends BatchPart {
  readonly complexity: number;
}

/** @param found what `resolve` has found. */
function partOf(
  content: unknown,
  found: ReturnType<Tasks['resolve']>,
  tasks: Tasks,
  sender: Pick<RequestContext, 'exchange' | 'viewer'>,
): CountedPart {
  // Rejected now: if a later operation of the batch registered its hash, it would run without having been counted.
  if (found instanceof GraphQLError)
    return { isInOrder: false, task: responseOf({ errors: [found] }, jsonType), complexity: 0 };
  const variables = isRecord(content) && isRecord(content.variables) ? content.variables : {};
  const measured = found && measure(tasks.documents, found, variables);
  const complexity = measured && 'complexity' in measured ? measured.complexity : 0;
  const task = tasks.of({ ...sender, accepted: asJson }, { content });
  const type = found?.operation.type;
  if (type !== OperationTypeNode.SUBSCRIPTION)
    return { isInOrder: type === OperationTypeNode.MUTATION, task, complexity };
  const message = 'A subscription cannot be part of a batch; send it in a request of its own';
  return { isInOrder: false, task: requestFailure(400, message), complexity: 0 };
}

const asJson: Accepted = { whole: jsonType, stream: undefined };

/** GraphQL over HTTP has no batches, so the response is `application/json` wherever the client accepts that. */
function typeFor(accept: string | undefined): string | undefined {
  const accepted = acceptedOf([jsonType, graphqlType], accept);
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
