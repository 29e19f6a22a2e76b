/** Faults of a service. */

import { setTimeout as sleep } from 'node:timers/promises';
import { failure, type Reply } from './reads.ts';
import type { Account } from './world.ts';

export interface Fault {
  /** Gives the response, and the request is not executed; undefined for no response ever. */
  readonly instead?: () => Reply | undefined;
  /** Changes the response after the request was executed. */
  readonly after?: (reply: Reply, asked: Asked) => Reply | Promise<Reply>;
}

export interface Asked {
  readonly method: string;
  /** Below the base, without the query. */
  readonly path: string;
  /** As the client has sent it. */
  readonly target: string;
  /** Undefined for an unknown token. */
  readonly account: Account | undefined;
}

/** In place of a response: the connection ends. */
export const cut: Reply = { status: 0, body: '' };

const html = '<!doctype html><title>Bad gateway</title><h1>Bad gateway</h1>';

export const faults = {
  slow: (milliseconds: number): Fault => ({
    async after(reply) {
      await sleep(milliseconds);
      return reply;
    },
  }),
  /** Never responds. */
  hang: { instead: () => undefined },
  error500: { instead: () => failure(500, 'Internal server error') },
  unavailable: (retryAfter: number): Fault => ({
    instead: () => ({
      ...failure(503, 'Service unavailable'),
      headers: { 'Retry-After': String(retryAfter) },
    }),
  }),
  /** An error page of a proxy. */
  html: { instead: () => ({ status: 502, body: html, headers: { 'Content-Type': 'text/html' } }) },
  html200: { instead: () => ({ status: 200, body: html, headers: { 'Content-Type': 'text/html' } }) },
  brokenJson: { instead: () => ({ status: 200, body: '{"ok":true,"data":{"id":' }) },
  /** Executes the request, and then fails. */
  lostResponse: { after: () => failure(500, 'Internal server error') },
} as const satisfies Readonly<Record<string, Fault | ((value: number) => Fault)>>;
