/** How WebSockets and event streams have the pipeline run their operations, which come without a request of their own. */

import type { IncomingMessage } from 'node:http';
import type { Viewer } from '../../auth/viewer.ts';
import type { Exchange, Transport } from '../../http/exchange.ts';
import type { HttpResponse, StreamedResponse } from '../../http/response.ts';
import type { UserQuota } from '../userQuota.ts';

/** An operation, or the authentication of the client before its first operation. */
export interface Incoming {
  /** The request id in the log. */
  readonly id: string;
  readonly transport: Transport;
  /** The value that a request would have in its `Authorization` header. */
  readonly authorization: string | undefined;
  /** The JSON of the request. */
  readonly body: Buffer;
}

/** An operation that runs. The caller has to end its exchange. */
export interface Started {
  readonly exchange: Exchange;
  /** Never rejects. */
  readonly response: Promise<HttpResponse | StreamedResponse>;
}

export interface PipelineAccess {
  /**
   * Runs an operation as if it were a request: it is counted, limited, cached, logged and measured as one.
   * @param opening the request that opened the connection.
   */
  run(opening: IncomingMessage, incoming: Incoming): Started;
  /**
   * Authenticates a client, which counts as a request for the rate limit.
   * @returns the viewer, null for a token that is not valid; or the error response of a rejected request.
   */
  identify(
    opening: IncomingMessage,
    incoming: Incoming,
  ): Promise<{ readonly viewer: Viewer | null } | HttpResponse>;
  /** Begins an exchange for work that goes on after the response to a request. The caller has to end it. */
  begin(opening: IncomingMessage, incoming: Incoming): Exchange;
  /** Calls back, at most once, when the viewer's token ends. @returns a function that ends the watch. */
  watch(viewer: Viewer, onEnded: () => void): () => void;
}

/** The error message for a client that opens more connections than a user may have. */
export const tooManyConnections = ({ limit }: UserQuota) =>
  `There are ${limit} WebSockets and event streams open; at most ${limit} are allowed`;
