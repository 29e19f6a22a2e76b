/**
 * The errors that somebody reads. Those that a client may see are in one table, and everything else is masked and logged;
 * those for whoever runs Dovetail say what to change.
 */

import { GraphQLError, type GraphQLFormattedError } from 'graphql';

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
  // What a client of automatic persisted queries is told, in GraphQL alone: clients take it with a status of success.
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
  internal: 'Internal server error',
  onlyQueries: 'Only queries are run here: no mutations, and no subscriptions',
  wrongPosition:
    'Dovetail-Position must be what the response to a write had, such as 1-0/16B3748, or be left out',
  primaryBehind: 'The database has not caught up with what you read or wrote before; try again',
  upstreamAway: 'The upstream cannot be reached; nothing was changed here',
  accountArriving: 'The account is being read from the upstream',
  accountUnread:
    'This account has not been read from the upstream yet; it will be, once a request comes with a token of the upstream',
  accountOutdated:
    'What was written may have reached the upstream, but could not be read back from there yet; try again',
  accountUnreachable:
    'The account cannot be reached upstream without a token of the upstream; nothing was changed here',
  upstreamBusy: 'The upstream takes no more requests of this account for now; nothing was changed here',
  upstreamUnreachable: 'The upstream cannot be reached',
  upstreamTooSlow: 'The upstream did not respond in time',
  upstreamUnreadable: 'The response of the upstream cannot be read',
  upstreamTooLarge: 'The response of the upstream is larger than 4 MiB',
  upstreamUnusable: 'The upstream rejected the request or sent what cannot be read; nothing was changed here',
} as const;

/** What is said of a user whose data a request names, and must not see. */
export const forbiddenUser = (id: string) => `Forbidden: user ${id} is not accessible`;

/** What may be wrong with the token of a request, as its client is told: in a header, which takes no quotation marks. */
export const tokenProblems = {
  missing: 'the request has no Authorization header, such as Authorization: Bearer TOKEN',
  malformed: 'the Authorization header must have the form Bearer TOKEN',
  invalid: 'the token is unknown or revoked',
} as const;

export type TokenProblem = keyof typeof tokenProblems;

/**
 * What every 401 carries: the scheme to authenticate by, and what is wrong with the token, if there is one (RFC 6750,
 * section 3).
 */
export function challengeFor(problem: TokenProblem): { 'WWW-Authenticate': string } {
  const error = `error="invalid_token", error_description="${tokenProblems[problem]}"`;
  return { 'WWW-Authenticate': problem === 'missing' ? 'Bearer' : `Bearer ${error}` };
}

/** What a client without a valid token is told by GraphQL. */
export const unauthorizedMessage = (problem: TokenProblem) =>
  `${messages.unauthorized}: ${tokenProblems[problem]}`;

/** The error of a request without a valid token: the only one that decides the status of a whole GraphQL response. */
export function unauthenticated(problem: TokenProblem): GraphQLError {
  const http = { status: statusOf.UNAUTHENTICATED, headers: challengeFor(problem) };
  return new GraphQLError(unauthorizedMessage(problem), { extensions: { code: 'UNAUTHENTICATED', http } });
}

/**
 * An error meant for the client, which belongs to its field. Its message reaches them through either API.
 * @param details when it may be tried again, in seconds.
 */
export function clientError(
  code: Exclude<ErrorCode, 'UNAUTHENTICATED'>,
  message: string,
  { retryAfter }: { readonly retryAfter?: number } = {},
): GraphQLError {
  const again = retryAfter === undefined ? {} : { retryAfter: Math.max(1, Math.ceil(retryAfter)) };
  return new GraphQLError(message, { extensions: { code, ...again } });
}

/** After how many seconds the client of an error may try again, if the error says so. */
export function retryAfterOf({ extensions }: ExecutionError): number | undefined {
  const seconds = extensions?.retryAfter;
  return typeof seconds === 'number' ? seconds : undefined;
}

/**
 * Details that a mirror does not have yet, and cannot have right now.
 * @param count of how many records.
 * @param retryAfter when they may be here, in seconds.
 */
export function detailsNotHere(count: number, retryAfter = 30): GraphQLError {
  const seconds = Math.max(1, Math.ceil(retryAfter));
  const records = count === 1 ? '1 record' : `${count} records`;
  return clientError(
    'SERVICE_UNAVAILABLE',
    `The details of ${records} are not here yet; try again in ${seconds} s`,
    { retryAfter: seconds },
  );
}

/** An error about one argument of a field, which the response names. */
export function argumentError(
  argument: string,
  message: string,
  code: ErrorCode = 'BAD_USER_INPUT',
): GraphQLError {
  return new GraphQLError(message, { extensions: { code, argument } });
}

/** An error of an execution, whether graphql-js or compiled code made it. */
export interface ExecutionError {
  readonly message: string;
  readonly locations?: GraphQLError['locations'];
  readonly path?: GraphQLError['path'];
  readonly originalError?: Error | undefined;
  readonly extensions?: Readonly<Record<string, unknown>> | undefined;
}

/** The code of an error made by one of the functions above, undefined for any other. */
export function codeOf({ extensions }: ExecutionError): ErrorCode | undefined {
  const code = extensions?.code;
  return typeof code === 'string' && Object.hasOwn(statusOf, code) ? (code as ErrorCode) : undefined;
}

/** The code with which a client sees the error, undefined for one that no client may see. */
export function codeForClient(error: ExecutionError): ErrorCode | undefined {
  return codeOf(error) ?? (isAboutRequest(error) ? 'BAD_USER_INPUT' : undefined);
}

/** How many characters of an error message a client is sent. graphql-js quotes values whole, however large they are. */
const mostCharacters = 1_000;

function shortened(message: string): string {
  if (message.length <= mostCharacters) return message;
  // Half a surrogate pair is no text.
  return `${message.slice(0, mostCharacters - 1).replace(/[\uD800-\uDBFF]$/, '')}…`;
}

/** The error as a client may see it: as it is if it is meant for them, masked and reported if it is not. */
export function errorForClient(
  error: ExecutionError,
  onHidden: (error: unknown) => void,
): GraphQLFormattedError {
  const code = codeForClient(error);
  const isHidden = code === undefined;
  if (isHidden) onHidden(error.originalError ?? error);
  // Yoga reads the HTTP status of the whole response from `http`, and removes it.
  const { http, argument, variable } = error.extensions ?? {};
  const retryAfter = retryAfterOf(error);
  return {
    message: isHidden ? messages.internal : shortened(error.message),
    ...(error.locations && { locations: error.locations }),
    ...(error.path && { path: error.path }),
    extensions: {
      code: code ?? 'INTERNAL_SERVER_ERROR',
      ...(typeof argument === 'string' && !isHidden && { argument }),
      ...(typeof variable === 'string' && !isHidden && { variable }),
      ...(retryAfter !== undefined && !isHidden && { retryAfter }),
      ...(http !== undefined && { http }),
    },
  };
}

/**
 * Whether the request itself is at fault: its syntax, its fields, its variables or its arguments. GraphQL reports
 * these by errors of its own, some of which wrap others. Those without a path were found before a resolver ran;
 * those that were found later point at the argument in the document, which no error out of a resolver does.
 */
function isAboutRequest(error: ExecutionError): boolean {
  let cause: unknown = error;
  while (cause instanceof GraphQLError && cause.originalError) cause = cause.originalError;
  return cause instanceof GraphQLError && (!error.path || cause.nodes !== undefined);
}

/** What is wrong with a server, a database or a role, and what to do about it: both for whoever runs Dovetail. */
export interface Diagnosis {
  readonly says: string;
  readonly advice: string;
}

/** A message for whoever runs Dovetail: printed as it is, without a stack. */
export class SetupError extends Error {
  override name = 'SetupError';
}

/** What an error says. A refused connection to a name with several addresses has its reasons one level down. */
export function errorText(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(errorText).join('; ');
  return error instanceof Error ? error.message : String(error);
}

/**
 * The text with the passwords of a URL blotted out: before the host, or in the query. Of a text that is no URL, all
 * that stands before an @ is taken for one.
 */
export function withoutPassword(text: string): string {
  return text
    .replace(/^([a-z][a-z\d+.-]*:\/\/)?([^:@]*)(:?).*@/is, (_, scheme = '', user, colon) =>
      scheme === '' ? '***@' : `${scheme}${user}${colon && ':***'}@`,
    )
    .replace(/([?&]\w*password=)[^&]*/gi, '$1***');
}

/** What to do about a password in a URL that ends it. */
export const encodedPassword =
  'A password with characters such as @, #, / or ? is written as encodeURIComponent makes it: see docs/configuration.md#passwords-in-urls.';

/** Whether a /, ? or # in the password of a URL seems to have cut its host off: an @ follows. */
export function hasCutPassword(url: string): boolean {
  const [, authority = '', rest = ''] = /^[a-z][a-z\d+.-]*:\/\/([^/?#]*)(.*)$/is.exec(url) ?? [];
  if (!rest.startsWith('?')) return /^[^?]*@/.test(rest);
  // There may well be an @ in a query, but no text in the place of a port.
  return rest.includes('@') && /:\D/.test(authority);
}
