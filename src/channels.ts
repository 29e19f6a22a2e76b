/**
 * What takes its time in a request, as diagnostics channels of Node: whoever traces listens to them, and while nobody
 * does they cost next to nothing.
 */

import { tracingChannel } from 'node:diagnostics_channel';
import type { IncomingMessage, ServerResponse } from 'node:http';

/** A request. What is not known when it arrives is there when its response closes. */
export interface TracedRequest {
  readonly id: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly endpoint: 'rest' | 'graphql' | 'mcp' | 'page';
  /** What was asked of the endpoint: one of few texts, and never what a client wrote. */
  readonly operation: string | undefined;
}

/** A request, from its arrival until its response is made. */
export const requestSpans = tracingChannel<unknown, { exchange: TracedRequest }>('dovetail:request');

/** An execution of a GraphQL operation, for whichever API, by its label. */
export const operationSpans = tracingChannel<unknown, { label: string }>('dovetail:operation');

/** A statement of SQL, without its values. */
export const statementSpans = tracingChannel<unknown, { text: string }>('dovetail:statement');
