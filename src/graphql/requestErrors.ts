/** Errors about a request as a whole, as opposed to one of its fields. Nothing of such a request is run. */

import { GraphQLError } from 'graphql';

/** The status of a bad request. By `spec`, Yoga sends 200 instead to clients that accept only `application/json`. */
export const badRequest = { status: 400, spec: true };

/** An error of the request as a whole, which says what the request would have to be. */
export function requestError(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'BAD_USER_INPUT', http: badRequest } });
}

/** An error of a request that cannot be understood: a 400 whatever media type the client accepts. */
export function unreadableRequest(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'BAD_USER_INPUT', http: { status: 400 } } });
}
