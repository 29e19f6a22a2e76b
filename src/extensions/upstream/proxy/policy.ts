/** Decides whether a stored response may be used (RFC 9111), by the package http-cache-semantics. */

import CachePolicy from 'http-cache-semantics';
import type { UpstreamRequest, UpstreamResponse } from '../client/http.ts';

/** How many seconds a stale response is still sent while the upstream fails (RFC 5861, section 4). */
const staleIfError = 60 * 60;

const storedStatuses = [200, 404];

/** Measures ages by a clock that nobody can set, so that no response seems younger than it is. */
class MonotonicPolicy extends CachePolicy {
  now(): number {
    return performance.timeOrigin + performance.now();
  }
}

/** The headers of a request. Those that make a request conditional are left out: the gateway decides about them. */
type RequestHeaders = Pick<UpstreamRequest, 'headers'>;

export type Policy = NonNullable<ReturnType<typeof policyFor>>;

/** The directives of `Cache-Control` as the package expects them: in lower case, and without the names of fields. */
const controlOf = ({ headers }: RequestHeaders) =>
  (headers['cache-control'] ?? '')
    .toLowerCase()
    .replace(/"(\d+)"/g, '$1')
    .replace(/="[^"]*"/g, '');

const hasDirective = (control: string, names: string) =>
  new RegExp(`(^|,)\\s*(${names})\\s*(=|,|$)`).test(control);

const withControl = ({ headers }: RequestHeaders, control: string) => ({
  headers: {
    ...headers,
    'cache-control': control,
    ...(headers.pragma !== undefined && { pragma: headers.pragma.toLowerCase() }),
  },
});

/** Whether the client wants a new response of the upstream (RFC 9111, sections 5.2.1.4 and 5.4). */
export const wantsNewResponse = (request: RequestHeaders): boolean =>
  hasDirective(controlOf(request), 'no-cache') || /no-cache/i.test(request.headers.pragma ?? '');

/** `Cache-Control` of a response, with our lifetime if the upstream states none. */
function controlWithLifetime(response: UpstreamResponse, lifetime: number): string {
  const control = controlOf(response);
  const { expires, pragma = '' } = response.headers;
  const isSaid =
    expires !== undefined || hasDirective(control, 'max-age|no-cache|no-store') || /no-cache/i.test(pragma);
  return isSaid ? control || pragma : `${control && `${control}, `}max-age=${lifetime}`;
}

/** The request headers by which a response varies. Servers that compress may forget to name `Accept-Encoding`. */
const varyOf = ({ headers }: UpstreamResponse): readonly string[] =>
  `${headers.vary ?? ''},${headers['content-encoding'] === undefined ? '' : 'accept-encoding'}`
    .toLowerCase()
    .split(',')
    .map((name) => name.trim());

/**
 * The policy of a response to GET, or undefined if the response must not be stored.
 * @param lifetime how many seconds it is fresh if the upstream does not state it.
 * @param delay how many seconds it took, which is a part of its age (RFC 9111, section 4.2.3).
 */
export function policyFor(
  request: UpstreamRequest,
  response: UpstreamResponse,
  lifetime: number,
  delay: number,
) {
  const { status } = response;
  if (!storedStatuses.includes(status)) return undefined;
  const control = controlWithLifetime(response, lifetime);
  const vary = varyOf(response);
  // The other headers would waste memory.
  const varied = Object.entries(request.headers).filter(([name]) => vary.includes(name));
  const policy = new MonotonicPolicy(
    withControl({ headers: Object.fromEntries(varied) }, controlOf(request)),
    {
      status,
      headers: {
        ...withControl(response, control).headers,
        vary: vary.join(),
        age: String((Number(response.headers.age) || 0) + Math.floor(delay)),
      },
    },
    { shared: false, cacheHeuristic: 0, immutableMinTimeToLive: 0 },
  );
  if (!policy.storable()) return undefined;
  const satisfies = (given: RequestHeaders, more = '') =>
    policy.satisfiesWithoutRevalidation(withControl(given, controlOf(given) + more));
  return {
    /** The memory that the headers take, in bytes. */
    bytes: JSON.stringify([varied, response.headers]).length,
    /** In seconds, with the age that the upstream stated. */
    age: () => policy.age(),
    /** Whether the response may be sent to a request without asking the upstream. */
    satisfies: (given: RequestHeaders) => satisfies(given),
    /** Whether it may be sent if the upstream is away, busy or broken. */
    mayReplaceError: (given: RequestHeaders) =>
      !hasDirective(control, 'no-cache') && satisfies(given, `,max-stale=${staleIfError}`),
  };
}
