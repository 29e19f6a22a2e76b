/**
 * The HTTP client of a service that speaks the interface: gentle with it, stubborn against its failures, and
 * trusting nothing that it says.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import pRetry from 'p-retry';
import { z } from 'zod';
import { errorText } from '../errors.ts';

export interface Upstream {
  /** The base URL, which includes the version segment. */
  readonly base: string;
  /** How many requests were sent so far, repetitions included. */
  requestCount(): number;
  /**
   * The `data` of the envelope that a path responds with.
   * @throws {Refusal} when the answer is no, {Unauthorized} for a bad token, {UpstreamError} after giving up.
   */
  get(path: string, signal?: AbortSignal): Promise<unknown>;
  post(path: string, body: unknown, signal?: AbortSignal): Promise<unknown>;
}

/** How long to wait for what, in milliseconds. */
export interface Timing {
  /** For one response, from the request to the end of its body. */
  readonly timeout: number;
  /** How often a request is repeated before giving up. */
  readonly retries: number;
  /** Before the first repetition; it doubles each time, up to `maxDelay`, and varies at random. */
  readonly delay: number;
  readonly maxDelay: number;
  /** The longest `Retry-After` that is waited for. */
  readonly timeouts: number;
}

const defaultTiming: Timing = {
  timeout: 15_000,
  retries: 8,
  delay: 500,
  maxDelay: 30_000,
  timeouts: 5 * 60_000,
};

/** The most that a response may have, in bytes: a page of 100 sessions has less than a tenth of it. */
const responseLimit = 4 * 1024 * 1024;

const maxRedirects = 3;

/** The upstream cannot be used. The message is for whoever runs Dovetail. */
export class UpstreamError extends Error {
  override name = 'UpstreamError';
}

/** The token is not accepted: no further request makes sense. */
export class Unauthorized extends UpstreamError {
  override name = 'Unauthorized';
}

/** The upstream is away, busy or broken, which may pass. */
export class Unavailable extends UpstreamError {
  override name = 'Unavailable';
}

/** The upstream understood, and the answer is no. */
export class HttpError extends UpstreamError {
  override name = 'Refusal';
  readonly status: number;
  /** The message of the interface's error envelope, if the response was one. */
  readonly said: string | undefined;

  constructor(message: string, status: number, said: string | undefined) {
    super(message);
    this.status = status;
    this.said = said;
  }
}

/** Whether the upstream says that the record does not exist. The interface does not state the status. */
export function isMissing(error: unknown): error is HttpError {
  if (!(error instanceof HttpError) || error.said === undefined) return false;
  return error.status === 404 || /not found/i.test(error.said);
}

/** Whether the upstream does not have the operation; its path may then look like that of an id. */
export function isNotOffered(error: unknown): error is HttpError {
  return (
    error instanceof HttpError && ([404, 405, 501].includes(error.status) || error.said === 'Invalid ID')
  );
}

const envelope = z.discriminatedUnion('ok', [
  z.object({ ok: z.literal(true), data: z.unknown() }),
  z.object({ ok: z.literal(false), error: z.string() }),
]);

export interface UpstreamOptions {
  readonly base: string;
  readonly token: string;
  readonly timing?: Partial<Timing>;
}

export function createUpstream({ base, token, timing }: UpstreamOptions): Upstream {
  const root = base.replace(/\/+$/, '');
  const { timeout, retries, delay, maxDelay, timeouts } = { ...defaultTiming, ...timing };
  let requests = 0;
  /** When the upstream wants to hear from us again: what it tells one request goes for all. */
  let pausedUntil = 0;

  return {
    base: root,
    requestCount: () => requests,
    get: (path, signal) => ask('GET', path, undefined, signal),
    post: (path, body, signal) => ask('POST', path, JSON.stringify(body), signal),
  };

  function ask(method: 'GET' | 'POST', path: string, body: string | undefined, signal?: AbortSignal) {
    const what = `${method} ${path}`;
    return pRetry(() => attempt(what, { method, body }, new URL(root + path), signal), {
      retries,
      minTimeout: delay,
      maxTimeout: maxDelay,
      randomize: true,
      signal,
      shouldRetry: ({ error }) => error instanceof Unavailable,
    }).catch((error: unknown) => {
      if (!(error instanceof Unavailable)) throw error;
      throw new Unavailable(`${error.message}. Gave up after ${retries + 1} attempts.`);
    });
  }

  async function attempt(what: string, request: Request, url: URL, signal?: AbortSignal): Promise<unknown> {
    const pause = pausedUntil - Date.now();
    if (pause > 0) await sleep(pause, undefined, { ...(signal && { signal }) });
    const deadline = AbortSignal.timeout(timeout);
    try {
      const response = await send(
        what,
        request,
        url,
        signal ? AbortSignal.any([signal, deadline]) : deadline,
      );
      return readResponse(what, response.status, await readBody(what, response), response.headers);
    } catch (error) {
      if (error instanceof UpstreamError) throw error;
      signal?.throwIfAborted();
      if (deadline.aborted) throw new Unavailable(`${what}: no answer within ${timeout / 1000} s`);
      throw new Unavailable(`${what}: ${reasonOf(error)}`);
    }
  }

  /** Sends a request, and follows redirects within the upstream's origin: the token goes nowhere else. */
  async function send(what: string, request: Request, url: URL, signal: AbortSignal): Promise<Response> {
    for (let hops = 0; ; hops++) {
      requests++;
      const response = await fetch(url, {
        method: request.method,
        ...(request.body !== undefined && { body: request.body }),
        headers: {
          Accept: 'application/json',
          Authorization: `Bearer ${token}`,
          ...(request.body !== undefined && { 'Content-Type': 'application/json' }),
        },
        redirect: 'manual',
        signal,
      });
      const location = response.headers.get('Location');
      if (response.status < 300 || response.status > 399 || location === null) return response;
      await response.body?.cancel();
      const target = new URL(location, url);
      if (target.origin !== url.origin || request.method !== 'GET' || hops >= maxRedirects) {
        throw new UpstreamError(
          `${what}: it redirects to ${quote(`${target.origin}${target.pathname}`)}, which is not followed`,
        );
      }
      url = target;
    }
  }

  function readResponse(what: string, status: number, text: string, headers: Headers): unknown {
    // The interface's own 401 does not depend on the body: nothing else can be meant.
    if (status === 401) throw new Unauthorized(`${what}: the upstream does not accept the token`);
    if (status === 429 || status === 408 || status >= 500) {
      pauseFor(what, headers.get('Retry-After'));
      throw new Unavailable(`${what}: it answered ${status}`);
    }
    const response = envelope.safeParse(parseJson(text)).data;
    if (response?.ok === true && status < 300) return response.data;
    if (response?.ok === false) {
      const message = `${what}: it answered ${status} ${quote(response.error)}`;
      throw new HttpError(message, status, response.error);
    }
    if (status >= 400) throw new HttpError(`${what}: it answered ${status}`, status, undefined);
    throw new Unavailable(`${what}: it answered ${status} without the interface's envelope`);
  }

  /** `Retry-After` is a number of seconds or a date (RFC 9110, section 10.2.3). */
  function pauseFor(what: string, retryAfter: string | null): void {
    if (retryAfter === null) return;
    const wait = /^\d+$/.test(retryAfter) ? Number(retryAfter) * 1000 : Date.parse(retryAfter) - Date.now();
    if (wait > timeouts) {
      throw new UpstreamError(
        `${what}: it asks to wait for ${Math.ceil(wait / 1000)} s. Gave up: try again then.`,
      );
    }
    if (wait > 0) pausedUntil = Math.max(pausedUntil, Date.now() + wait);
  }

  /** The upstream's words, safe to print: short, without control characters, and without the token. */
  function quote(text: string): string {
    return JSON.stringify(text.replaceAll(token, '***').slice(0, 200).replace(/\p{C}/gu, ' '));
  }
}

interface Request {
  readonly method: 'GET' | 'POST';
  readonly body: string | undefined;
}

/** @throws {UpstreamError} for a body over the limit, after reading no more than that. */
async function readBody(what: string, { body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    size += chunk.length;
    if (size > responseLimit) {
      throw new UpstreamError(`${what}: the answer is larger than ${responseLimit / 1024 / 1024} MiB`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** `fetch` says only that it failed; why stands in the cause. */
const reasonOf = (error: unknown) =>
  errorText(error instanceof Error && error.cause instanceof Error ? error.cause : error);
