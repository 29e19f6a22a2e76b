/** The errors of requests to the upstream, and the part of them that is no secret. */

import { systemCodeOf } from '../errors.ts';

/** The part of a failure that logs and metrics may show: no ids, no names, and no text of the upstream. */
export interface Failure {
  /** A predicate whose subject is the upstream, such as `cannot be reached`. */
  readonly failure: string;
  readonly method?: string;
  /** Its path without ids and without a query, such as `/dtt/{id}`. */
  readonly route?: string;
  readonly status?: number;
}

/** The upstream cannot be used. The message is only for the terminal of the operator. */
export class UpstreamError extends Error {
  readonly failure: Failure;
  /** Whether the upstream may have carried out the request, although it did not confirm it. */
  mayHaveActed = false;

  constructor(message: string, failure: Failure) {
    super(message);
    this.name = new.target.name;
    this.failure = failure;
  }
}

/** The failure of a response that makes no sense. */
export const incomprehensible = 'responded with what cannot be understood';

/** A path without ids and without a query. */
export function routeOf(path: string): string {
  return path.replace(/\?.*/, '').replace(/\/\d+(?=\/|$)/g, '/{id}');
}

/** The error for a response that makes no sense. The reason is for the terminal only. */
export const unreadable = (path: string, reason: string) =>
  new UpstreamError(`GET ${path}: ${reason}`, {
    failure: incomprehensible,
    method: 'GET',
    route: routeOf(path),
  });

/** The token is not accepted: no further request makes sense. */
export class Unauthorized extends UpstreamError {}

/** The token opens another account than it did. */
export class AnotherAccount extends UpstreamError {}

/** The upstream is away, busy or broken for now. */
export class Unavailable extends UpstreamError {}

/** No more requests may be sent for now, by the upstream or by the budget. */
export class UpstreamBusy extends UpstreamError {
  /** In seconds from now. */
  readonly retryAfter: number;

  constructor(message: string, failure: Failure, retryAfter: number) {
    super(message, failure);
    this.retryAfter = retryAfter;
  }
}

/** The upstream understood the request, and rejected it. */
export class UpstreamRejection extends UpstreamError {
  readonly status: number;
  /** The message of the interface's error envelope, if the response was one. */
  readonly said: string | undefined;

  constructor(message: string, failure: Failure & { readonly status: number }, said: string | undefined) {
    super(message, failure);
    this.status = failure.status;
    this.said = said;
  }
}

/** Whether the upstream says that the record does not exist. The interface does not state the status. */
export function isMissing(error: unknown): error is UpstreamRejection {
  if (!(error instanceof UpstreamRejection) || error.said === undefined) return false;
  return error.status === 404 || /not found/i.test(error.said);
}

/** Whether the interface itself forbids the token something. A 403 without its envelope may come from a proxy. */
export const isForbidden = (error: unknown): error is UpstreamRejection =>
  error instanceof UpstreamRejection && error.status === 403 && error.said !== undefined;

/** Whether the upstream lacks the operation, at least for this account. It may read the last word of the path as an id. */
export function isNotOffered(error: unknown): error is UpstreamRejection {
  if (!(error instanceof UpstreamRejection)) return false;
  return [404, 405, 501].includes(error.status) || error.said === 'Invalid ID' || isForbidden(error);
}

/** Codes of system errors with which no connection is made. */
const unconnected = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** Whether no connection was made for a request, by the error of `node:http`: then the upstream has done nothing. */
export const isUnconnected = (error: unknown): boolean => unconnected.has(systemCodeOf(error) ?? '');

/** Whether a request failed before it was sent, by the error of `fetch`. */
export const wasNotSent = (error: unknown): boolean =>
  isUnconnected(error instanceof Error ? error.cause : undefined);
