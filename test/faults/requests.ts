/** Sends requests to a gateway, and records the outcome of each. */

import { messages, systemCodeOf } from '../../src/errors.ts';

export interface Request {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly token: string;
  readonly body?: string;
}

export interface Reply {
  /** The HTTP status, with the error's code for a GraphQL response with errors, or why there was no response. */
  readonly outcome: string;
  readonly body: string;
  /** In milliseconds: when the request was sent, by the clock of `performance.now`, and how long the response took. */
  readonly began: number;
  readonly took: number;
}

/** In milliseconds: longer than any response may take. */
const timeout = 30_000;

/** Sends a request. The promise never rejects: a missing response is an outcome as well. */
export async function sendRequest(url: string, { method, path, token, body }: Request): Promise<Reply> {
  const began = performance.now();
  const [outcome, text] = await fetch(`${url}${path}`, {
    method,
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: body ?? null,
    signal: AbortSignal.timeout(timeout),
  })
    .then(async (response) => {
      const received = await response.text();
      return [outcomeOf(response.status, received), received] as const;
    })
    .catch((error: Error) => [nameOf(error), ''] as const);
  return { outcome, body: text, began, took: performance.now() - began };
}

function nameOf({ message, cause }: Error): string {
  const code = systemCodeOf(cause) ?? '';
  if (code === 'ECONNREFUSED') return 'refused';
  return ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'].includes(code) ? 'cut off' : message;
}

function outcomeOf(status: number, text: string): string {
  const code = status === 200 ? /^\{"errors":.*"code":"(\w+)"/.exec(text)?.[1] : undefined;
  return code ? `200 with ${code}` : String(status);
}

/** What is wrong with an error response that is not the documented one, or undefined. */
export function findUndocumented({ path }: Request, { outcome, body }: Reply): string | undefined {
  const documented: Readonly<Record<string, readonly [code: string, message: string]>> = {
    500: ['INTERNAL_SERVER_ERROR', 'Internal server error'],
    503: [
      'SERVICE_UNAVAILABLE',
      body.includes(messages.databaseAway) ? messages.databaseAway : messages.tooBusy,
    ],
    '200 with INTERNAL_SERVER_ERROR': ['INTERNAL_SERVER_ERROR', 'Internal server error'],
  };
  // Without a response there is no body to check.
  if (!/^\d/.test(outcome) || outcome === '200') return undefined;
  const [code, message] = documented[outcome] ?? [];
  const isRest = path.startsWith('/api/v1');
  const expected = isRest
    ? body === JSON.stringify({ ok: false, error: message })
    : body.includes(`"message":"${message}"`) && body.includes(`"code":"${code}"`);
  return expected && code ? undefined : `${outcome}: ${body.slice(0, 200)}`;
}
