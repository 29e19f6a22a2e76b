/** What a transport has done by the pipeline: operations that no request of their own has brought. */

import type { IncomingMessage } from 'node:http';
import type { Viewer } from '../../auth/viewer.ts';
import type { Exchange, Transport } from '../../http/exchange.ts';
import type { HttpResponse, StreamedResponse } from '../../http/response.ts';
import type { UserQuota } from '../userQuota.ts';

/** An operation, or the attempt to say who sends them. */
export interface Incoming {
  /** What it is called in the log. */
  readonly id: string;
  readonly transport: Transport;
  /** What the `Authorization` header of a request would have. */
  readonly authorization: string | undefined;
  /** The JSON of the request. */
  readonly body: Buffer;
}

/** An operation on its way, which whoever started it has to `conclude`. */
export interface Started {
  readonly exchange: Exchange;
  /** Never rejects. */
  readonly response: Promise<HttpResponse | StreamedResponse>;
}

export interface PipelineAccess {
  /**
   * Runs an operation as if it were a request: it is counted, limited, cached, logged and measured as one.
   * @param opening the request that has opened the way of the operation.
   */
  run(opening: IncomingMessage, incoming: Incoming): Started;
  /**
   * Says who a client is, and counts that it asked to be known.
   * @returns the viewer, null for a token that is none; or the response to a request that could not be let in.
   */
  identify(
    opening: IncomingMessage,
    incoming: Incoming,
  ): Promise<{ readonly viewer: Viewer | null } | HttpResponse>;
  /** An exchange for what goes on after the response to a request. It has to be concluded. */
  begin(opening: IncomingMessage, incoming: Incoming): Exchange;
  /** Calls back, at most once, when the token that the viewer came with has ended. @returns what ends the watch. */
  watch(viewer: Viewer, onEnded: () => void): () => void;
}

/** What a client is told that wants one more than a user may have. */
export const tooManyConnections = ({ limit }: UserQuota) =>
  `There are ${limit} WebSockets and event streams open; at most ${limit} are allowed`;
