/**
 * Errors and their messages. Those that several parts of the gateway send are in one table. A client sees only errors that are meant
 * for it; any other is masked and logged. Errors for the operator of Dovetail say what to change.
 */

import { GraphQLError } from 'graphql';

/** The values of `extensions.code`, each with the HTTP status of the REST API. */
export const statusOf = {
  BAD_USER_INPUT: 400,
  UNAUTHENTICATED: 401,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  TOO_MANY_REQUESTS: 429,
  INTERNAL_SERVER_ERROR: 500,
  BAD_GATEWAY: 502,
  SERVICE_UNAVAILABLE: 503,
  // Of automatic persisted queries, in GraphQL alone. Clients expect these errors with a status of success.
  PERSISTED_QUERY_NOT_FOUND: 200,
  PERSISTED_QUERY_NOT_SUPPORTED: 200,
} as const;

export type ErrorCode = keyof typeof statusOf;

export const messages = {
  unauthorized: 'Unauthorized',
  invalidId: 'Invalid ID',
  notFound: 'Not found',
  templateNotOwned: 'Template not found or not owned by user',
  methodNotAllowed: 'Method not allowed',
  bodyTooLarge: 'Request body too large',
  bodyEncoded: 'Request body must be sent as it is, without a Content-Encoding',
  bodyNotUtf8: 'Request body must be UTF-8',
  badRequest: 'Bad request',
  tooSlow: 'Request timeout',
  headersTooLarge: 'Request header fields too large',
  tooManyRequests: 'Too many requests',
  tooBusy: 'Too busy; try again',
  databaseAway: 'The database cannot be reached; try again',
  closing: 'The gateway closes; subscribe again',
  internal: 'Internal server error',
  wrongPosition:
    'Dovetail-Position must be what the response to a write had, such as 1-0/16B3748, or be left out',
  primaryBehind: 'The database has not caught up with what you read or wrote before; try again',
} as const;

/** The message for a request that names a user whose data it may not see. */
export const forbiddenUser = (id: string) => `Forbidden: user ${id} is not accessible`;

/** The message for a user who has reached the limit of open subscriptions, in which followed routes count. */
export const tooManySubscriptions = (limit: number) =>
  `There are ${limit} subscriptions open; at most ${limit} are allowed`;

/** Why a token is not created, rotated or revoked, for clients and for the command line. */
export const tokenMessages = {
  unnamed: 'A token needs a name, so that its owner can tell it from others',
  invisible: 'The name of a token takes visible characters alone',
  longName: (longest: number) => `The name of a token has at most ${longest} characters`,
  taken: (name: string) => `Another active token has the name ${JSON.stringify(name)}`,
  noScope: 'scopes must name at least one scope',
  past: 'The time at which a token expires must be in the future',
  outlives: 'The new token would last longer than the one that creates it',
  tier: (tier: string | null) =>
    `Creating a token needs the ultra tier; the account has ${JSON.stringify(tier)}`,
  tooMany: (most: number) => `The account already has ${most} active tokens; revoke one first`,
  tooOften: (most: number) =>
    `The account has created ${most} tokens within an hour, the most that it may; try again later`,
  noActive: (id: number) => `There is no active token with the id ${id}`,
  madeElsewhere: 'The tokens of this account are made by the service where it lives, and not here',
} as const;

/**
 * The error of an operation beyond the scope of its token. Nothing of the operation is run.
 * @param isForeign whether it is a token of another service: these may do all but manage tokens.
 */
export function beyondScope(needed: string, isForeign: boolean): GraphQLError {
  const http = { status: statusOf.FORBIDDEN };
  const message = isForeign ? tokenMessages.madeElsewhere : scopeNeeded(needed);
  return new GraphQLError(message, { extensions: { code: 'FORBIDDEN', http } });
}

/** The message for a request beyond the scope of its token. */
export const scopeNeeded = (needed: string) => `Forbidden: this needs a token with the scope ${needed}`;

/** The problems of the token of a request. The texts are also sent in a header, so they have no quotation marks. */
export const tokenProblems = {
  missing: 'the request has no Authorization header, such as Authorization: Bearer TOKEN',
  malformed: 'the Authorization header must have the form Bearer TOKEN, with one word after Bearer',
  invalid: 'the token is unknown or revoked',
  expired: 'the token has expired or was replaced',
} as const;

export type TokenProblem = keyof typeof tokenProblems;

/**
 * The header of every 401: the authentication scheme, and the problem of the token, if the request has one (RFC 6750,
 * section 3).
 */
export function challengeFor(problem: TokenProblem): { 'WWW-Authenticate': string } {
  const error = `error="invalid_token", error_description="${tokenProblems[problem]}"`;
  return { 'WWW-Authenticate': problem === 'missing' ? 'Bearer' : `Bearer ${error}` };
}

/** The message of GraphQL for a request without a valid token. */
export const unauthorizedMessage = (problem: TokenProblem) =>
  `${messages.unauthorized}: ${tokenProblems[problem]}`;

/** The error of a request without a valid token. It decides the status of a whole GraphQL response. */
export function unauthenticated(problem: TokenProblem): GraphQLError {
  const http = { status: statusOf.UNAUTHENTICATED, headers: challengeFor(problem) };
  return new GraphQLError(unauthorizedMessage(problem), { extensions: { code: 'UNAUTHENTICATED', http } });
}

/**
 * Creates an error for the client, of the field that throws it. Both APIs show its message.
 * @param details.retryAfter in seconds: when the client may try again.
 */
export function clientError(
  code: Exclude<ErrorCode, 'UNAUTHENTICATED'>,
  message: string,
  { retryAfter }: { readonly retryAfter?: number } = {},
): GraphQLError {
  const again = retryAfter === undefined ? {} : { retryAfter: Math.max(1, Math.ceil(retryAfter)) };
  return new GraphQLError(message, { extensions: { code, ...again } });
}

/** The error of a request that the database cannot serve now. It decides the status of a whole GraphQL response. */
export function unserved(why: 'databaseAway' | 'tooBusy'): GraphQLError {
  const http = { status: statusOf.SERVICE_UNAVAILABLE, headers: { 'Retry-After': '1' } };
  return new GraphQLError(messages[why], {
    extensions: { code: 'SERVICE_UNAVAILABLE', retryAfter: 1, http },
  });
}

/** After how many seconds the client may try again; undefined if the error does not say. */
export function retryAfterOf({ extensions }: ExecutionError): number | undefined {
  const seconds = extensions?.retryAfter;
  return typeof seconds === 'number' ? seconds : undefined;
}

/** Creates an error about an argument of a field. The response names the argument. */
export function argumentError(
  argument: string,
  message: string,
  code: ErrorCode = 'BAD_USER_INPUT',
): GraphQLError {
  return new GraphQLError(message, { extensions: { code, argument } });
}

/** An error of an execution, by graphql-js or by compiled code. */
export interface ExecutionError {
  readonly message: string;
  readonly path?: GraphQLError['path'];
  readonly originalError?: Error | undefined;
  readonly extensions?: Readonly<Record<string, unknown>> | undefined;
}

/** The code of an error that one of the functions above created; undefined for any other. */
export function codeOf({ extensions }: ExecutionError): ErrorCode | undefined {
  const code = extensions?.code;
  return typeof code === 'string' && Object.hasOwn(statusOf, code) ? (code as ErrorCode) : undefined;
}

/** The maximum length of an error message for a client, in characters. graphql-js quotes values of any size. */
const maxMessageLength = 1_000;

function truncate(message: string): string {
  if (message.length <= maxMessageLength) return message;
  // Removes half of a surrogate pair, which is no valid text.
  return `${message.slice(0, maxMessageLength - 1).replace(/[\uD800-\uDBFF]$/, '')}…`;
}

/**
 * The error as a client may see it: unchanged if it is meant for clients, otherwise masked. A masked error has what it hides as
 * its `originalError`, for the log.
 */
export function clientErrorOf(error: unknown): GraphQLError {
  const given =
    error instanceof GraphQLError ? error : new GraphQLError('', { originalError: asError(error) });
  const code = codeOf(given) ?? (isAboutRequest(given) ? 'BAD_USER_INPUT' : undefined);
  const { argument, variable, http } = given.extensions;
  const { nodes = null, source = null, positions = null, path = null, originalError } = given;
  const place = { nodes, source, positions, path };
  if (code === undefined)
    return new GraphQLError(messages.internal, {
      ...place,
      originalError: originalError ?? given,
      extensions: { code: 'INTERNAL_SERVER_ERROR' },
    });
  if (codeOf(given) !== undefined && given.message.length <= maxMessageLength) return given;
  const retryAfter = retryAfterOf(given);
  return new GraphQLError(truncate(given.message), {
    ...place,
    extensions: {
      code,
      ...(typeof argument === 'string' && { argument }),
      ...(typeof variable === 'string' && { variable }),
      ...(retryAfter !== undefined && { retryAfter }),
      ...(http !== undefined && { http }),
    },
  });
}

const asError = (error: unknown) => (error instanceof Error ? error : new Error(String(error)));

/** What a masked error hides; undefined for any other error. */
export const hiddenIn = ({ extensions, originalError }: ExecutionError): unknown =>
  extensions?.code === 'INTERNAL_SERVER_ERROR' ? originalError : undefined;

/**
 * Whether the request itself is at fault: its syntax, its fields, its variables or its arguments. graphql-js reports these
 * by GraphQLErrors, which may wrap each other. An error without a path was found before a resolver ran. An error that was
 * found later has the node of the argument in the document, which no error of a resolver has.
 */
function isAboutRequest(error: ExecutionError): boolean {
  let cause: unknown = error;
  while (cause instanceof GraphQLError && cause.originalError) cause = cause.originalError;
  if (!(cause instanceof GraphQLError)) return false;
  // Pothos' plugins report a wrong cursor or size of a page so.
  return !error.path || cause.nodes !== undefined || cause.name === 'PothosValidationError';
}

/** An error for the operator of Dovetail. Its message is printed as it is, without a stack. */
export class SetupError extends Error {
  override name = 'SetupError';
}

/** A database that cannot be used. `dovetail doctor` says what to do about it. */
export class UnusableDatabase extends SetupError {}

/** The message of an error. An AggregateError, as of a failed connection to a name with several addresses, has several. */
export function errorText(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(errorText).join('; ');
  return error instanceof Error ? error.message : String(error);
}

/** PostgreSQL's code if the role lacks a right. */
export const lacksRight = '42501';

/** The code that Node or PostgreSQL has given an error, such as `EPIPE` or `42501`; undefined if it has none. */
export function systemCodeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/** The parameters of a PostgreSQL URL that are no secret. */
const shownParameters =
  'host|port|user|dbname|ssl(?:mode|rootcert|cert|key)|options|application_name|uselibpqcompat';

/** The URL with its password masked, and each parameter that may be one; `***` for a text that is no URL. */
export function withoutPassword(text: string): string {
  // `pg` accepts a URL without a host, and `URL` does not.
  if (!/^[a-z][a-z\d+.-]*:\/\//i.test(text) || !URL.canParse(text.replace('@/', '@host/'))) return '***';
  return text
    .replace(/^([^:]*:\/\/[^:@]*)(:?).*@/s, (_, user, colon) => `${user}${colon && ':***'}@`)
    .replace(new RegExp(`([?&])(?!(?:${shownParameters})=)[^&]*`, 'g'), '$1***');
}
