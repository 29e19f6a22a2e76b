/** The client of the gateway's GraphQL API for one token: what was read once is normalised and shared by all views. */

import { fetchExchange, Client as UrqlClient } from '@urql/core';
import { cacheExchange } from '@urql/exchange-graphcache';
import { CloseCode, createClient as createSocket } from 'graphql-ws';
import { liveExchanges } from './live.ts';
import { onceExchange } from './once.ts';

/** How it stands with the connection over which changes are heard. */
export type Connection =
  | { readonly state: 'connecting' | 'open' | 'lost' }
  /** The gateway is there, and takes no connection for now. */
  | { readonly state: 'postponed'; readonly reason: string };

export interface ApiClient {
  readonly urql: UrqlClient;
  close(): void;
}

export interface ApiListener {
  /** Told of every change of the connection. */
  connectionChanged(connection: Connection): void;
  /** The token is not valid, or not any more. @param reason what the gateway says. */
  refused(reason: string): void;
}

/** In milliseconds: how long to wait before the connection is tried again. It becomes longer up to this. */
const longestWait = 5_000;

/** In milliseconds: how often the gateway is asked for a sign of life, and how long it may take to give one. */
const heartbeat = { every: 10_000, within: 5_000 };

export function createApiClient(token: string, { connectionChanged, refused }: ApiListener): ApiClient {
  const Authorization = `Bearer ${token}`;
  let isClosed = false;
  let wasOpen = false;
  let untilDead: ReturnType<typeof setTimeout> | undefined;
  const socket = createSocket({
    url: new URL('/graphql', location.href).href.replace(/^http/, 'ws'),
    connectionParams: { Authorization },
    lazy: false,
    keepAlive: heartbeat.every,
    retryAttempts: Number.POSITIVE_INFINITY,
    shouldRetry: (problem) => !isClosed && !isRefusal(problem),
    retryWait: (attempts) => untilNextAttempt(Math.min(250 * 2 ** attempts, longestWait)),
    // Whoever listens has been told by `closed`.
    onNonLazyError: () => {},
    on: {
      connecting: (isRetry) => {
        if (!isRetry) connectionChanged({ state: 'connecting' });
      },
      connected() {
        wasOpen = true;
        connectionChanged({ state: 'open' });
      },
      ping: (isReceived) => {
        if (!isReceived) untilDead = setTimeout(() => socket.terminate(), heartbeat.within);
      },
      pong: (isReceived) => {
        if (isReceived) clearTimeout(untilDead);
      },
      closed: (event) => {
        clearTimeout(untilDead);
        if (isClosed) return;
        if (isRefusal(event) || (!wasOpen && isMalformed(event))) refused(event.reason);
        else connectionChanged(stateAfter(event));
      },
    },
  });
  // What is closed would connect once more to subscribe, with a token that was forgotten.
  const subscribe: typeof socket.subscribe = (payload, sink) =>
    isClosed ? () => {} : socket.subscribe(payload, sink);
  const { before, behind } = liveExchanges({ subscribe });
  const urql = new UrqlClient({
    url: '/graphql',
    preferGetMethod: false,
    exchanges: [onceExchange, before, cacheExchange({ keys: keysOfParts }), behind, fetchExchange],
    fetchOptions: { headers: { Authorization } },
  });
  return {
    urql,
    close() {
      isClosed = true;
      void socket.dispose();
    },
  };
}

/** Waits for so long, or until the browser has a network again. */
function untilNextAttempt(time: number): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      removeEventListener('online', done);
      resolve();
    };
    const timer = setTimeout(done, time * (0.75 + Math.random() / 2));
    addEventListener('online', done);
  });
}

const isRefusal = (problem: unknown): problem is CloseEvent =>
  problem instanceof CloseEvent && problem.code === CloseCode.Forbidden;

/** What the gateway cannot read, such as a token that is far too long. */
const isMalformed = (problem: unknown): problem is CloseEvent =>
  problem instanceof CloseEvent && problem.code === CloseCode.BadRequest;

/** The code of the registry that RFC 6455 opens (section 11.7) for too many requests or connections. */
const tryAgainLater = 1013;

const stateAfter = (event: unknown): Connection =>
  event instanceof CloseEvent && event.code === tryAgainLater
    ? { state: 'postponed', reason: event.reason }
    : { state: 'lost' };

/** What has no id of its own is a part of what it was read with. */
const partOfParent = () => null;

const keysOfParts = Object.fromEntries(
  [
    'ActivateTemplatePayload',
    'DeviceConnection',
    'DttDeviceConnection',
    'DttSessionConnection',
    'DttSessionStats',
    'DttSessionStatsGroup',
    'DttSessionStatsTotal',
    'DttTemplateConnection',
    'LkbxDeviceConnection',
    'LockSessionConnection',
    'LockSessionStats',
    'LockSessionStatsGroup',
    'LockSessionStatsTotal',
    'LockTemplateConnection',
    'OssmDeviceConnection',
    'PageInfo',
    'StatsPeriod',
  ].map((name) => [name, partOfParent]),
);
