/** Requests from outside, and what came of each. */

import { type Agent, request } from 'node:http';

export interface Question {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly token: string;
  readonly body?: string;
}

export interface Reply {
  /** The HTTP status, the error's code for a GraphQL answer with errors, or why there was no answer. */
  readonly outcome: string;
  readonly body: string;
  /** Whether it was asked to write. */
  readonly isWrite: boolean;
  /** In milliseconds: when it began, by the clock of `performance.now`, and how long it took. */
  readonly began: number;
  readonly took: number;
}

/** Longer than any answer may take. */
const timeouts = 30_000;

/** Never fails: that there was no answer is an outcome as well. */
export function ask(url: string, agent: Agent, { method, path, token, body }: Question): Promise<Reply> {
  const began = performance.now();
  const isWrite = method === 'POST' && path.startsWith('/api/v1');
  return new Promise((resolve) => {
    const settle = (outcome: string, text: string) =>
      resolve({ outcome, body: text, isWrite, began, took: performance.now() - began });
    const outgoing = request(`${url}${path}`, {
      method,
      agent,
      timeout: timeouts,
      headers: {
        Authorization: `Bearer ${token}`,
        ...(body !== undefined && {
          'Content-Type': 'application/json',
          'Content-Length': Buffer.byteLength(body),
        }),
      },
    });
    outgoing.on('timeout', () => outgoing.destroy(new Error('no answer')));
    outgoing.on('error', (error: NodeJS.ErrnoException) => settle(nameOf(error), ''));
    outgoing.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (data) => {
        text += data;
      });
      response.on('error', (error: NodeJS.ErrnoException) => settle(nameOf(error), text));
      response.on('end', () => settle(outcomeOf(response.statusCode ?? 0, text), text));
    });
    outgoing.end(body);
  });
}

function nameOf({ code, message }: NodeJS.ErrnoException): string {
  if (code === 'ECONNREFUSED') return 'refused';
  return code === 'ECONNRESET' || code === 'EPIPE' ? 'cut off' : message;
}

function outcomeOf(status: number, text: string): string {
  const code = status === 200 ? /^\{"errors":.*"code":"(\w+)"/.exec(text)?.[1] : undefined;
  return code ? `200 with ${code}` : String(status);
}

/** What is wrong with an answer that tells of a failure, if it is not the documented one. */
export function findFault({ path }: Question, { outcome, body }: Reply): string | undefined {
  const documented: Readonly<Record<string, readonly [code: string, message: string]>> = {
    500: ['INTERNAL_SERVER_ERROR', 'Internal server error'],
    503: ['SERVICE_UNAVAILABLE', 'Too busy; try again'],
    '200 with INTERNAL_SERVER_ERROR': ['INTERNAL_SERVER_ERROR', 'Internal server error'],
  };
  // Without an answer there is nothing in it to be wrong.
  if (!/^\d/.test(outcome) || outcome === '200') return undefined;
  const [code, message] = documented[outcome] ?? [];
  const isRest = path.startsWith('/api/v1');
  const expected = isRest
    ? body === JSON.stringify({ ok: false, error: message })
    : body.includes(`"message":"${message}"`) && body.includes(`"code":"${code}"`);
  return expected && code ? undefined : `${outcome}: ${body.slice(0, 200)}`;
}
