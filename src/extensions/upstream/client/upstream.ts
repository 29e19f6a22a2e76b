/**
 * The HTTP client of a service with the REST interface. It waits when the service asks for it, retries failed requests, and
 * validates each response.
 */

import pRetry from 'p-retry';
import { z } from 'zod';
import { errorText } from '../../../errors.ts';
import { parseJson } from '../../../http/json.ts';
import { type Budget, createBudget, longestPause, type Priority } from './budget.ts';
import { isUnconnected, responseLimit, sendRequest } from './http.ts';

export interface Upstream {
  /** The base URL, which includes the version segment. */
  readonly base: string;
  /** Whether the token is that of the settings, and not of a client. */
  readonly isConfigured: boolean;
  /** How many requests were sent so far, repetitions included. */
  requestCount(): number;
  /**
   * The `data` of the envelope that a path responds with.
   * @throws {UpstreamRejection} for a rejected request, {Unauthorized} for a bad token, {UpstreamError} after the last attempt.
   */
  get(path: string, signal?: AbortSignal): Promise<unknown>;
  post(path: string, body: unknown, signal?: AbortSignal): Promise<unknown>;
}

/** Timeouts and pauses in milliseconds, and the number of retries. */
export interface Timing {
  /** For one response, from the request to the end of its body. */
  readonly timeout: number;
  /** How often a request is repeated before giving up. */
  readonly retries: number;
  /** Before the first repetition. It doubles each time, and varies at random. */
  readonly delay: number;
  /** The longest `Retry-After` to wait for. For requests of a waiting client, also the longest wait for the budget. */
  readonly longestPause: number;
}

const defaultTiming: Timing = {
  timeout: 15_000,
  retries: 8,
  delay: 500,
  longestPause: 5 * 60_000,
};

const envelope = z.discriminatedUnion('ok', [
  z.object({ ok: z.literal(true), data: z.unknown() }),
  z.object({ ok: z.literal(false), error: z.string() }),
]);

export interface UpstreamOptions {
  readonly base: string;
  readonly token: string;
  /** Whether the token is that of the settings. By default it is that of a client. */
  readonly isConfigured?: boolean;
  readonly timing?: Partial<Timing>;
  /** Limits the requests of the account. By default there is no limit. */
  readonly budget?: Budget;
  readonly priority?: Priority;
  readonly inTurn?: <T>(send: () => Promise<T>, method: 'GET' | 'POST') => Promise<T>;
  readonly onUnauthorized?: (route: string) => void;
}

/** Quotes a text of the upstream: short, without control characters, and without the token, which an upstream may repeat. */
type Quote = (text: string) => string;

export function createUpstream(options: UpstreamOptions): Upstream {
  const { base, token, isConfigured = false, onUnauthorized } = options;
  const { budget = createBudget(0), priority = 'refresh', inTurn = (send) => send() } = options;
  const { timeout, retries, delay, longestPause } = { ...defaultTiming, ...options.timing };
  const quote: Quote = (text) =>
    JSON.stringify(text.replaceAll(token, '***').slice(0, 200).replace(/\p{C}/gu, ' '));
  let sent = 0;

  return {
    base,
    isConfigured,
    requestCount: () => sent,
    get: (path, signal) => repeat({ method: 'GET', path, body: '' }, signal),
    post: (path, body, signal) => repeat({ method: 'POST', path, body: JSON.stringify(body) }, signal),
  };

  /** Calls again, at growing intervals, until the upstream is available. A write is sent once: it may have been carried out. */
  async function repeat(call: Call, signal?: AbortSignal): Promise<unknown> {
    const attempt = async () => {
      const wait = priority === 'demand' ? budget.delayFor(1) : 0;
      if (wait > longestPause) throw exhausted(call, 'the budget of the account has nothing left', wait);
      await budget.take(priority, signal);
      return inTurn(() => send(call, signal), call.method);
    };
    return pRetry(attempt, {
      retries: call.method === 'GET' ? retries : 0,
      minTimeout: delay,
      randomize: true,
      signal,
      shouldRetry: ({ error }) => error instanceof Unavailable,
    });
  }

  async function send(call: Call, signal?: AbortSignal): Promise<unknown> {
    const request = requestOf(base, call);
    const deadline = AbortSignal.timeout(timeout);
    const stop = signal ? AbortSignal.any([signal, deadline]) : deadline;
    sent++;
    try {
      const response = await sendRequest(request, token, stop);
      const { status } = response;
      if (status === 401) onUnauthorized?.(routeOf(call.path));
      const pause = isBusy(response) ? readRetryAfter(response.headers['retry-after']) : 0;
      if (pause > 0) budget.pauseFor(pause);
      if (pause > longestPause) throw exhausted(call, 'it asks to wait', pause, status);
      return dataOf(call, request.url, response, quote);
    } catch (error) {
      if (error instanceof UpstreamError) throw error;
      signal?.throwIfAborted();
      const [reason, failure] = deadline.aborted
        ? [`no response within ${timeout / 1000} s`, 'did not respond in time']
        : [errorText(error), 'cannot be reached'];
      const failed = new Unavailable(`${nameOf(call)}: ${reason}`, failureOf(call, failure));
      failed.mayHaveActed = !isUnconnected(error);
      throw failed;
    }
  }
}

interface Call {
  readonly method: 'GET' | 'POST';
  /** Below the base. */
  readonly path: string;
  readonly body: string;
}

function requestOf(base: string, { method, path, body }: Call) {
  const url = new URL(base + path);
  const headers = { accept: 'application/json', ...(body && { 'content-type': 'application/json' }) };
  return { method, url, path: url.pathname + url.search, headers, body: Buffer.from(body) };
}

/** Its name in messages for the terminal, such as `GET /users/me`. */
const nameOf = ({ method, path }: Call) => `${method} ${path}`;

const failureOf = ({ method, path }: Call, failure: string, status?: number): Failure => ({
  failure,
  method,
  route: routeOf(path),
  ...(status !== undefined && { status }),
});

/** How long the upstream asks to wait, in milliseconds, an hour at most: in seconds, or by a date (RFC 9110, section 10.2.3). */
export function readRetryAfter(header: string | null | undefined): number {
  const text = header ?? '';
  const wait = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return wait > 0 ? Math.min(wait, longestPause) : 0;
}

/** @param wait in milliseconds. */
function exhausted(call: Call, why: string, wait: number, status?: number): UpstreamBusy {
  const seconds = Math.ceil(wait / 1000);
  const message = `${nameOf(call)}: ${why} for ${seconds} s. Gave up: try again then.`;
  return new UpstreamBusy(message, failureOf(call, `asks to wait for ${seconds} s`, status), seconds);
}

/** Whether a later attempt may succeed: the upstream is overloaded, too slow or broken. */
export const isBusy = ({ status }: { readonly status: number }) =>
  status === 429 || status === 408 || status >= 500;

/** @throws {UpstreamError} of the class for the meaning of a response without data. */
function dataOf(
  call: Call,
  url: URL,
  response: Awaited<ReturnType<typeof sendRequest>>,
  quote: Quote,
): unknown {
  const name = nameOf(call);
  const { status, headers, body } = response;
  if (!body) {
    const limit = responseLimit / 1024 / 1024;
    const failure = failureOf(call, incomprehensible);
    throw new UpstreamError(`${name}: the response is larger than ${limit} MiB`, failure, true);
  }
  const failure = { ...failureOf(call, `responded with ${status}`), status };
  // The body does not matter: the status is clear.
  if (status === 401) {
    const message = `${name}: the upstream does not accept the token`;
    throw new Unauthorized(message, { ...failure, failure: 'rejected the token' });
  }
  // A redirect is not followed: the token must not be sent elsewhere, and no write repeated.
  if (status >= 300 && status <= 399 && headers.location !== undefined) {
    const { origin, pathname } = new URL(headers.location, url);
    const message = `${name}: it redirects to ${quote(`${origin}${pathname}`)}, which is not followed`;
    throw new UpstreamError(message, failureOf(call, 'redirects to where it is not followed'), true);
  }
  if (isBusy(response)) throw new Unavailable(`${name}: it responded with ${status}`, failure, status >= 500);
  const content = envelope.safeParse(parseJson(body.toString())).data;
  if (content?.ok === true && status < 300) return content.data;
  if (content?.ok === false || status >= 400) {
    const said = content?.ok === false ? content.error : undefined;
    const hint = status === 404 ? '. Does UPSTREAM_URL name the base of the REST interface?' : '';
    const more = said === undefined ? hint : ` ${quote(said)}`;
    throw new UpstreamRejection(`${name}: it responded with ${status}${more}`, failure, said);
  }
  const message = `${name}: it responded with ${status} without the interface's envelope`;
  throw new Unavailable(message, failure, true);
}

/** The part of a failure that logs and metrics may show: no ids, no names, and no text of the upstream. */
interface Failure {
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
  mayHaveActed: boolean;

  constructor(message: string, failure: Failure, mayHaveActed = false) {
    super(message);
    this.name = new.target.name;
    this.failure = failure;
    this.mayHaveActed = mayHaveActed;
  }
}

const incomprehensible = 'responded with what cannot be understood';

/** A path without ids and without a query. */
const routeOf = (path: string) => path.replace(/\?.*/, '').replace(/\/\d+(?=\/|$)/g, '/{id}');

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
    super(message, failure, (failure.status ?? 0) >= 500);
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

/** The response of a path; undefined if the upstream has neither the operation nor the record. */
export async function getOptional(upstream: Upstream, path: string, signal?: AbortSignal): Promise<unknown> {
  try {
    return await upstream.get(path, signal);
  } catch (error) {
    if (isNotOffered(error) || isMissing(error)) return undefined;
    throw error;
  }
}
