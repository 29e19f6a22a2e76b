/**
 * What takes its time in a request, as diagnostics channels of Node: whoever traces listens to them, and while nobody
 * does they cost next to nothing.
 */

import { tracingChannel } from 'node:diagnostics_channel';
import type { Exchange } from './http/exchange.ts';

/** A request, from its arrival until its door is done with it. */
export const requestSpans = tracingChannel<unknown, { exchange: Exchange }>('dovetail:request');

/** An execution of a GraphQL operation, for either door, by its label. */
export const operationSpans = tracingChannel<unknown, { label: string }>('dovetail:operation');

/** A statement of SQL, without its values. */
export const statementSpans = tracingChannel<unknown, { text: string }>('dovetail:statement');
