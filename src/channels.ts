/**
 * Diagnostics channels of Node for the parts of a request that take time. Tracing subscribes to them. Without a
 * subscriber they cost almost nothing.
 */

import { tracingChannel } from 'node:diagnostics_channel';
import type { IncomingMessage, ServerResponse } from 'node:http';

/** A request. Fields that are unknown when it arrives are set when its response closes. */
export interface TracedRequest {
  readonly id: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly endpoint: 'rest' | 'graphql' | 'page' | { readonly name: string };
  /** The operation or route: one of a few texts, never text from the client. */
  readonly operation: string | undefined;
}

/** A request, from its arrival until its response is computed. */
export const requestSpans = tracingChannel<unknown, { exchange: TracedRequest }>('dovetail:request');

/** The execution of a GraphQL operation, for any of the APIs. */
export const operationSpans = tracingChannel<unknown, { label: string }>('dovetail:operation');

/** An SQL statement, without its values. */
export const statementSpans = tracingChannel<unknown, { text: string }>('dovetail:statement');
