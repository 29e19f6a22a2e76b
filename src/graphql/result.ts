/** Makes results of executions what clients may see, and responses of them. */

import type { ExecutionResult, FormattedExecutionResult } from 'graphql';
import { type ExecutionError, errorForClient } from '../errors.ts';
import { type HttpResponse, jsonResponse } from '../http/response.ts';
import { jsonType, type WholeType } from './mediaTypes.ts';

/** Is told of every error that is hidden from the client. */
export type Report = (error: unknown) => void;

/** The request headers on which a response depends. */
export const vary = 'Authorization, Accept';

/** How many errors a response has at most: as many as a page has records. Where a field fails, it often does for each of a list. */
const mostErrors = 100;

/** Lets through the errors that are meant for clients, with their codes, and masks all others. */
export function forClient({ data, errors }: ExecutionResult, report: Report): FormattedExecutionResult {
  return {
    ...(errors && { errors: errors.slice(0, mostErrors).map((error) => errorForClient(error, report)) }),
    ...(data !== undefined && { data }),
  };
}

/** The response that has the result. */
export function responseOf(result: ExecutionResult, type: WholeType, report: Report): HttpResponse {
  const shown = forClient(result, report);
  const { status, headers } = httpOf(result, type);
  const response = jsonResponse(status, JSON.stringify(shown), {
    'Content-Type': `${type}; charset=utf-8`,
    'Cache-Control': 'no-store',
    Vary: vary,
    ...headers,
  });
  return { ...response, ...errorCodeOf(shown) };
}

/** The code of the first error, for the log. */
export function errorCodeOf({ errors: [first] = [] }: FormattedExecutionResult): { errorCode?: string } {
  return first ? { errorCode: String(first.extensions?.code) } : {};
}

/** What an error says about the status of the whole response. */
interface ErrorHttp {
  readonly status: number;
  /** Whether clients that accept only `application/json` get a 200 all the same. */
  readonly spec?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The status and the headers of a response: the highest status that one of the errors has. */
function httpOf({ errors = [] }: ExecutionResult, type: WholeType) {
  let status = 200;
  let headers: ErrorHttp['headers'] = {};
  // Errors of compiled code may have no extensions.
  for (const { extensions } of errors as readonly ExecutionError[]) {
    // Only `errors.ts` and `requestFailure.ts` set it.
    const http = extensions?.http as ErrorHttp | undefined;
    if (!http) continue;
    headers = { ...headers, ...http.headers };
    if (!(http.spec && type === jsonType)) status = Math.max(status, http.status);
  }
  return { status, headers };
}
