/** How WebSockets have the pipeline authenticate their clients and run their operations, which come without a request of their own. */

import type { IncomingMessage } from 'node:http';
import type { GraphQLFormattedError } from 'graphql';
import type { Viewer } from '../../auth/viewer.ts';
import type { Exchange } from '../../http/exchange.ts';
import type { HttpResponse, StreamedResponse } from '../../http/response.ts';

/** An operation, or the authentication of the client before its first operation. */
export interface Incoming {
  /** The request id in the log. */
  readonly id: string;
  /** The value that a request would have in its `Authorization` header. */
  readonly authorization: string | undefined;
  /** The JSON of the request; empty for the authentication. */
  readonly body: Buffer;
}

export interface PipelineAccess {
  /**
   * Runs an operation as if it were a request: it is counted, limited, cached, logged and measured as one.
   * @param opening the request that opened the connection.
   * @returns an exchange, which the caller has to end, and the response, which never rejects. The stream of a subscription
   * has one result in each piece, and breaks off with an `OperationFailed`.
   */
  run(
    opening: IncomingMessage,
    incoming: Incoming,
  ): { readonly exchange: Exchange; readonly response: Promise<HttpResponse | StreamedResponse> };
  /**
   * Authenticates a client, which counts as a request for the rate limit.
   * @returns the viewer, null for a token that is not valid; or the error response of a rejected request. Never rejects.
   */
  identify(
    opening: IncomingMessage,
    incoming: Incoming,
  ): Promise<{ readonly viewer: Viewer | null } | HttpResponse>;
  /** Calls back, at most once, when the viewer's token ends. @returns a function that ends the watch. */
  watch(viewer: Viewer, onEnded: () => void): () => void;
}

/** The error of an operation whose client is to be sent these errors in place of a result. */
export class OperationFailed extends Error {
  override name = 'OperationFailed';
  readonly errors: readonly GraphQLFormattedError[];

  constructor(errors: readonly GraphQLFormattedError[]) {
    super(errors[0]?.message);
    this.errors = errors;
  }
}
