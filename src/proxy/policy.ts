/** When a stored response may be used (RFC 9111), by the package http-cache-semantics. */

import CachePolicy from 'http-cache-semantics';
import type { Headers, UpstreamRequest, UpstreamResponse } from './forward.ts';

/** For how long after it has become stale, in seconds, a response is sent while the upstream gives none (RFC 5861, section 4). */
const staleIfError = 60 * 60;

/** The statuses of responses that are stored. */
const storedStatuses = [200, 404];

/** Has ages by a clock that cannot be set, so that no response seems younger than it is. */
class MonotonicPolicy extends CachePolicy {
  now(): number {
    return performance.timeOrigin + performance.now();
  }
}

/** The headers of a request. Those that make a request conditional are left out: the gateway decides about them. */
type RequestHeaders = Pick<UpstreamRequest, 'headers'>;

export interface Policy {
  /** The age of the response in seconds, with the age that the upstream stated. */
  age(): number;
  /** Whether the response may be sent to a request without asking the upstream. */
  satisfies(request: RequestHeaders): boolean;
  /** Whether it may be sent if the upstream gives no response, or one that says that the upstream is busy or broken. */
  mayReplaceError(request: RequestHeaders): boolean;
  /** The headers that ask the upstream whether the response is still the one to a request; none if it never was. */
  validatorsFor(request: RequestHeaders): Headers;
}

/** The directives of `Cache-Control` in lower case, as the package expects them. */
const controlOf = ({ headers }: RequestHeaders) => headers['cache-control']?.toLowerCase() ?? '';

const withControl = ({ headers }: RequestHeaders, control: string) => ({
  headers: { ...headers, 'cache-control': control },
});

/** Whether a request wants a response that the upstream gives after it (RFC 9111, sections 5.2.1.4 and 5.4). */
export const wantsNewResponse = (request: RequestHeaders): boolean =>
  /no-cache/.test(controlOf(request) + (request.headers.pragma ?? ''));

/** Adds for how many seconds a response is fresh, unless the upstream says so. */
function controlWithLifetime(response: UpstreamResponse, lifetime: number): string {
  const control = controlOf(response);
  const { expires, pragma } = response.headers;
  const isSaid =
    expires !== undefined || /max-age|no-cache|no-store/.test(control) || /no-cache/.test(pragma ?? '');
  return isSaid ? control || (pragma ?? '') : `${control && `${control}, `}max-age=${lifetime}`;
}

/**
 * The policy of a response, or undefined if the response must not be stored.
 * @param lifetime for how many seconds it is fresh if the upstream does not say.
 */
export function policyFor(
  request: UpstreamRequest,
  response: UpstreamResponse,
  lifetime: number,
): Policy | undefined {
  const { status } = response;
  if (request.method !== 'GET' || !storedStatuses.includes(status)) return undefined;
  const control = controlWithLifetime(response, lifetime);
  const policy = new MonotonicPolicy(
    withControl(request, controlOf(request)),
    { status, ...withControl(response, control) },
    { shared: false },
  );
  if (!policy.storable()) return undefined;
  const satisfies = (given: RequestHeaders, more = '') =>
    policy.satisfiesWithoutRevalidation(withControl(given, controlOf(given) + more));
  return {
    age: () => policy.age(),
    satisfies,
    mayReplaceError: (given) => !/no-cache/.test(control) && satisfies(given, `,max-stale=${staleIfError}`),
    validatorsFor(given) {
      const headers = policy.revalidationHeaders(given);
      const { 'if-none-match': tag, 'if-modified-since': time } = headers;
      return {
        ...(typeof tag === 'string' && { 'if-none-match': tag }),
        ...(typeof time === 'string' && { 'if-modified-since': time }),
      };
    },
  };
}
