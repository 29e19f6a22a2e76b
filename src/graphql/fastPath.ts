/**
 * The fast path runs a plain JSON POST of an operation that has been seen before without Yoga. It leaves every unusual
 * request to Yoga, and every request that turns out to be wrong.
 */

import { type ExecutionResult, OperationTypeNode } from 'graphql';
import type { Viewer } from '../auth/viewer.ts';
import { type ExecutionError, errorForClient } from '../errors.ts';
import type { Exchange } from '../http/exchange.ts';
import { type HttpResponse, jsonResponse } from '../http/response.ts';
import type { OtherWork, Query, Work } from '../http/task.ts';
import type { PreparedOperation } from '../schema/compile.ts';
import type { Context } from '../schema/context.ts';
import { firstErrors } from './clientErrors.ts';
import type { Documents } from './documents.ts';
import type { WholeType } from './mediaTypes.ts';
import type { PersistedOperations } from './persisted.ts';
import { type PlainRequest, readPlainRequest } from './plainRequest.ts';
import { vary, type YogaWork } from './yogaWork.ts';

/** A POST that may take the fast path. */
export interface Post {
  readonly body: Buffer;
  /** The media type of its response. */
  readonly type: WholeType;
  readonly viewer: Viewer;
}

export interface FastPathOptions {
  readonly documents: Documents;
  readonly persisted: PersistedOperations;
  readonly yogaWork: YogaWork;
  createContext(viewer: Viewer): Context;
}

/** Undefined for a request that is not for the fast path. */
export type FastPath = (exchange: Exchange, post: Post) => Work | undefined;

export function createFastPath({ documents, persisted, yogaWork, createContext }: FastPathOptions): FastPath {
  function query(
    exchange: Exchange,
    { body, type, viewer }: Post,
    { variables, isCacheable }: PlainRequest,
    operation: PreparedOperation,
  ): Query {
    return {
      kind: 'query',
      async run() {
        const result = await operation.run(variables, createContext(viewer));
        if (isWhole(result)) {
          const response = { ...responseOf(exchange, result, type), operation: operation.label };
          return { response, isCacheable: isCacheable && !result.errors };
        }
        // Equal requests may share this response, so it is made for the media type, not for this client's `Accept`
        // header.
        return { response: await yogaWork.finish(exchange, body, viewer, type), isCacheable: false };
      },
    };
  }

  function mutation(
    exchange: Exchange,
    { body, type, viewer }: Post,
    { variables }: PlainRequest,
    operation: PreparedOperation,
  ): OtherWork {
    return {
      kind: 'other',
      mayHaveWritten: () => true,
      async run() {
        const result = await operation.run(variables, createContext(viewer));
        if (result.data !== undefined) return responseOf(exchange, result, type);
        // Without data nothing was executed, and Yoga says why.
        return yogaWork.handle(exchange, body, viewer, type).run();
      },
    };
  }

  return (exchange, post) => {
    const plain = readPlainRequest(post.body, persisted, post.viewer);
    const operation = plain && documents.prepared(plain.text, plain.operationName, plain.variables);
    if (!operation) return undefined;
    exchange.operation = operation.label;
    const work = operation.type === OperationTypeNode.QUERY ? query : mutation;
    return work(exchange, post, plain, operation);
  };
}

function responseOf(exchange: Exchange, { data, errors }: ExecutionResult, type: string): HttpResponse {
  const shown = errors && firstErrors(errors).map((error) => errorForClient(error, exchange.report));
  const headers = { 'Content-Type': `${type}; charset=utf-8`, 'Cache-Control': 'no-store', Vary: vary };
  const response = jsonResponse(200, JSON.stringify({ errors: shown, data }), headers);
  return shown?.[0] ? { ...response, errorCode: String(shown[0].extensions?.code) } : response;
}

/** Whether the response is a 200. Yoga decides where nothing was executed, or where an error has a status. */
function isWhole({ data, errors }: ExecutionResult): boolean {
  // Errors of compiled code may have no extensions.
  return (
    data !== undefined && !errors?.some(({ extensions }: ExecutionError) => extensions?.http !== undefined)
  );
}
