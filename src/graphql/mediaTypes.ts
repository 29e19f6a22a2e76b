/** The media types of GraphQL's responses, and which of them a client gets. */

import { LRUCache } from 'lru-cache';
import { acceptedOf, readAccept } from '../http/accept.ts';

export const jsonType = 'application/json';

/** GraphQL over HTTP, section 4.2. */
export const graphqlType = 'application/graphql-response+json';

/** What a response is that has one result. */
const wholeTypes = [jsonType, graphqlType] as const;

/** What a query or mutation can be had as besides: a stream with one result. */
const streamTypes = ['text/event-stream', 'multipart/mixed'] as const;

export type WholeType = (typeof wholeTypes)[number];
export type ResultType = WholeType | (typeof streamTypes)[number];

/** What a subscription can be had as, as its clients are told. */
export const streamingTypes = 'text/event-stream or multipart/mixed;subscriptionSpec=1.0';

export const notAcceptable = `A query or mutation gives ${graphqlType} or ${jsonType}, a subscription ${streamingTypes}: Accept has to name it`;

/** What clients send is nearly always one of a few. */
const known = new LRUCache<string, { type: ResultType | undefined }>({ max: 100 });

/**
 * The media type of the response to a query or mutation, decided before it is run; undefined where none is accepted. Nobody
 * who takes a whole response gets a stream: Apollo names the one for subscriptions before all others.
 */
export function resultTypeFor(accept = ''): ResultType | undefined {
  const found = known.get(accept);
  if (found) return found.type;
  const ranges = readAccept(accept);
  const [type] = [...acceptedOf(wholeTypes, ranges), ...acceptedOf(streamTypes, ranges)];
  known.set(accept, { type });
  return type;
}
