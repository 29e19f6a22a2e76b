/** The GraphQL client for one token. All views share its normalised cache. */

import { fetchExchange, Client as UrqlClient } from '@urql/core';
import { cacheExchange } from '@urql/exchange-graphcache';
import { CloseCode, createClient as createSocket } from 'graphql-ws';
import { home } from '../paths.ts';
import { liveExchanges } from './live.ts';
import { onceExchange } from './once.ts';

/** The state of the WebSocket over which changes arrive. */
export type Connection =
  | { readonly state: 'connecting' | 'open' | 'lost' }
  /** The gateway is reachable, but takes no connection for now. */
  | { readonly state: 'postponed'; readonly reason: string };

export interface ApiClient {
  readonly urql: UrqlClient;
  close(): void;
}

export interface ApiListener {
  /** Called whenever the state of the connection changes. */
  connectionChanged(connection: Connection): void;
  /** As in `liveExchanges`. */
  outageChanged(message: string | undefined): void;
  /** Called when the token is invalid, or has become invalid. @param reason what the gateway says. */
  tokenRejected(reason: string): void;
}

/** In milliseconds: the delay before the next attempt to connect doubles up to this. */
const maxRetryDelay = 5_000;

/** In milliseconds: how often a ping is sent, and how long the gateway may take to respond to it. */
const heartbeat = { interval: 10_000, timeout: 5_000 };

export function createApiClient(token: string, listener: ApiListener): ApiClient {
  const { connectionChanged, outageChanged, tokenRejected } = listener;
  const Authorization = `Bearer ${token}`;
  let isClosed = false;
  let wasOpen = false;
  let pongTimer: ReturnType<typeof setTimeout> | undefined;
  const socket = createSocket({
    url: new URL(`${home}graphql`, location.href).href.replace(/^http/, 'ws'),
    connectionParams: { Authorization },
    lazy: false,
    keepAlive: heartbeat.interval,
    retryAttempts: Number.POSITIVE_INFINITY,
    shouldRetry: (problem) => !isClosed && !isForbidden(problem),
    retryWait: (attempts) => waitBeforeRetry(Math.min(250 * 2 ** attempts, maxRetryDelay)),
    // The `closed` handler below has told the listener already.
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
        if (!isReceived) pongTimer = setTimeout(() => socket.terminate(), heartbeat.timeout);
      },
      pong: (isReceived) => {
        if (isReceived) clearTimeout(pongTimer);
      },
      closed: (event) => {
        clearTimeout(pongTimer);
        if (isClosed) return;
        if (isForbidden(event) || (!wasOpen && isMalformed(event))) tokenRejected(event.reason);
        else connectionChanged(stateAfter(event));
      },
    },
  });
  // A closed client would connect again for a new subscription, with a token that the user has signed out of.
  const subscribe: typeof socket.subscribe = (payload, sink) =>
    isClosed ? () => {} : socket.subscribe(payload, sink);
  const cache = cacheExchange({ keys });
  const { beforeCache, afterCache } = liveExchanges({ subscribe, outageChanged });
  const urql = new UrqlClient({
    url: `${home}graphql`,
    preferGetMethod: false,
    exchanges: [onceExchange, beforeCache, cache, afterCache, fetchExchange],
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

/** Waits for this many milliseconds, 25 % more or less, or until the browser has a network again. */
function waitBeforeRetry(milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      removeEventListener('online', done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds * (0.75 + Math.random() / 2));
    addEventListener('online', done);
  });
}

const isForbidden = (problem: unknown): problem is CloseEvent =>
  problem instanceof CloseEvent && problem.code === CloseCode.Forbidden;

/** Whether the gateway could not read the handshake, for example because the token is far too long. */
const isMalformed = (problem: unknown): problem is CloseEvent =>
  problem instanceof CloseEvent && problem.code === CloseCode.BadRequest;

/** "Try Again Later" in the registry of close codes (RFC 6455, section 11.7): too many requests or connections. */
const tryAgainLater = 1013;

const stateAfter = (event: unknown): Connection =>
  event instanceof CloseEvent && event.code === tryAgainLater
    ? { state: 'postponed', reason: event.reason }
    : { state: 'lost' };

/** The cache stores an object without an id as a part of the object that it was read with. */
const keyOf = ({ id }: { id?: unknown }) => (typeof id === 'string' ? id : null);

/** The same for every type, so that no list of types has to be kept. */
const keys: Record<string, typeof keyOf> = new Proxy({}, { get: () => keyOf });
