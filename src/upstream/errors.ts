/** How requests to the upstream fail, and what may be told of it. */

import { systemCodeOf } from '../errors.ts';

/** What may be told of a failure where anybody reads it: no ids, no names, and nothing in the upstream's words. */
export interface Failure {
  /** Said of the upstream, such as `cannot be reached`. */
  readonly failure: string;
  readonly method?: string;
  /** Its path without ids and without a query, such as `/dtt/{id}`. */
  readonly route?: string;
  readonly status?: number;
}

/** The upstream cannot be used. The message is for the terminal of whoever runs Dovetail, and for nobody else. */
export class UpstreamError extends Error {
  readonly failure: Failure;
  /** Whether the upstream may have done what it was asked to do, though it did not say so. */
  mayHaveActed = false;

  constructor(message: string, failure: Failure) {
    super(message);
    this.name = new.target.name;
    this.failure = failure;
  }
}

/** What is told of a response that makes no sense. */
export const incomprehensible = 'responded with what cannot be understood';

/** A path as it may be told to anybody. */
export function routeOf(path: string): string {
  return path.replace(/\?.*/, '').replace(/\/\d+(?=\/|$)/g, '/{id}');
}

/** The error for what was read from a path and makes no sense. The reason is for the terminal only. */
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

/** The upstream is away, busy or broken, which may pass. */
export class Unavailable extends UpstreamError {}

/** The upstream takes no more requests for now: it said so, or the budget does. */
export class UpstreamBusy extends UpstreamError {
  /** In seconds from now. */
  readonly retryAfter: number;

  constructor(message: string, failure: Failure, retryAfter: number) {
    super(message, failure);
    this.retryAfter = retryAfter;
  }
}

/** The upstream understood the request, and said no. */
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

/** Whether the interface says that the token does not open something, and not what is on the way to it. */
export const isForbidden = (error: unknown): error is UpstreamRejection =>
  error instanceof UpstreamRejection && error.status === 403 && error.said !== undefined;

/** Whether the upstream does not have the operation, for this account at least; its path may then look like that of an id. */
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
