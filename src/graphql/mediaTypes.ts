/** The media types of GraphQL's responses, and which of them a client gets. */

import { LRUCache } from 'lru-cache';
import { acceptedOf, readAccept } from '../http/accept.ts';

export const jsonType = 'application/json';

/** GraphQL over HTTP, section 4.2. */
export const graphqlType = 'application/graphql-response+json';

/** The media types of a response that has one result. */
const wholeTypes = [jsonType, graphqlType] as const;

/** A query or mutation can also be had as a stream with one result. */
const streamTypes = ['text/event-stream', 'multipart/mixed'] as const;

export type WholeType = (typeof wholeTypes)[number];
export type ResultType = WholeType | (typeof streamTypes)[number];

export const isWholeType = (type: ResultType): type is WholeType => type === jsonType || type === graphqlType;

/** The media types of subscriptions, as error messages name them. */
const streamingTypes = 'text/event-stream or multipart/mixed;subscriptionSpec=1.0';

export const notAcceptable = `Accept must name ${graphqlType} or ${jsonType} for a query or mutation, ${streamingTypes} for a subscription`;

/** Caches the types by the `Accept` header, of which clients send few different ones. */
const known = new LRUCache<string, { type: ResultType | undefined }>({ max: 100 });

/**
 * The media type of the response to a query or mutation; undefined where the client accepts none. It is decided before the
 * operation runs. A client that accepts a whole response never gets a stream, whatever it prefers: Apollo Client names the
 * stream for subscriptions before all other types.
 */
export function resultTypeFor(accept = ''): ResultType | undefined {
  const found = known.get(accept);
  if (found) return found.type;
  const ranges = readAccept(accept);
  const [type] = [...acceptedOf(wholeTypes, ranges), ...acceptedOf(streamTypes, ranges)];
  known.set(accept, { type });
  return type;
}
