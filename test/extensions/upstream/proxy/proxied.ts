/** A proxy in front of an upstream whose responses a test decides, over real HTTP. */

import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import type { Viewer } from '../../../../src/auth/viewer.ts';
import { createBudget } from '../../../../src/extensions/upstream/client/budget.ts';
import { createTurns, type InTurn } from '../../../../src/extensions/upstream/client/turns.ts';
import { messages } from '../../../../src/extensions/upstream/messages.ts';
import { createProxy, type ProxyOptions } from '../../../../src/extensions/upstream/proxy/proxy.ts';
import type { Exchange } from '../../../../src/http/exchange.ts';
import { send } from '../../../../src/http/send.ts';
import { openExchanges } from '../../../support/exchanges.ts';
import { createFakeFeed } from '../../../support/feed.ts';
import { openScripted } from '../support/scripted.ts';

/** The tokens of clients, each with its account: tokens of the upstream, and one of the gateway's own. */
const accountIds = new Map([
  ['alice', 1],
  ['second of alice', 1],
  ['own of alice', 1],
  ['own reader of alice', 1],
  ['own narrowed of alice', 1],
  ['own ended of alice', 1],
  ['bob', 2],
]);

export interface ProxiedOptions extends Partial<Pick<ProxyOptions, 'lifetime' | 'maxBytes'>> {
  /** How long, in milliseconds, the upstream may take. */
  readonly longest?: number;
  /** How long, in milliseconds, a request may wait for its turn. */
  readonly longestWait?: number;
  /** Requests a minute. */
  readonly rate?: number;
  readonly catchUp?: () => Promise<boolean>;
}

export async function openProxied(options: ProxiedOptions = {}) {
  const upstream = await openScripted();
  const written: string[] = [];
  const rejected: number[] = [];
  const handled: Exchange[] = [];
  const listeners: ((accountId: number) => void)[] = [];
  const tokensOf = new WeakMap<Viewer, string>();
  const fake = createFakeFeed(options.catchUp);
  const budgets = new Map([1, 2].map((id) => [id, createBudget(options.rate ?? 0)]));
  const createInTurn = createTurns(options.longestWait);
  const turns = new Map<number, InTurn>();
  function turnsOf(id: number): InTurn {
    const inTurn = turns.get(id) ?? createInTurn();
    turns.set(id, inTurn);
    return inTurn;
  }
  const proxy = createProxy({
    feed: fake.feed,
    lifetime: options.lifetime ?? 60,
    maxBytes: options.maxBytes ?? 1_000_000,
    accounts: {
      base: upstream.base,
      longest: options.longest ?? 5_000,
      unreachable: { code: 'SERVICE_UNAVAILABLE', message: messages.accountUnreachable },
      onWrite: (listener) => void listeners.push(listener),
      async accessFor(viewer) {
        const { id } = viewer;
        const budget = budgets.get(id);
        const token = tokensOf.get(viewer) ?? '';
        return (
          budget && {
            accountId: id,
            token: `token of ${token}`,
            budget,
            inTurn: turnsOf(id),
            tokenDigest: token,
            noteRejected: () => void rejected.push(id),
            async noteWrite(path) {
              written.push(path);
              for (const listener of listeners) listener(id);
            },
          }
        );
      },
    },
  });
  const exchanges = await openExchanges(async (exchange) => {
    handled.push(exchange);
    Object.assign(exchange.headers, { RateLimit: '"token";r=9;t=60', Vary: 'Origin' });
    const token = (exchange.request.headers.authorization ?? '').replace('Bearer ', '');
    const viewer = {
      id: accountIds.get(token) ?? 3,
      tokenId: token.startsWith('own') ? 1 : undefined,
      scope: token.includes('reader') ? 'read' : 'activate',
    } as const;
    tokensOf.set(viewer, token);
    const now = token.includes('ended')
      ? null
      : token.includes('narrowed')
        ? ({ ...viewer, scope: 'read' } as const)
        : viewer;
    // After an error the client must not wait.
    const response = await proxy(exchange, viewer, () => now).catch(() => void exchange.response.destroy());
    if (response) send(exchange, response);
  });
  const proxied = {
    /** The address of the gateway. */
    url: exchanges.url,
    upstream,
    requests: upstream.requests,
    /** The paths of the writes that the gateways were told of, and the accounts whose token the upstream has rejected. */
    written,
    rejected,
    /** What is known of each request for the log. */
    handled: () => handled.map(({ operation, cache }) => [operation, cache]),
    feed: fake,
    budget: (id: number) => budgets.get(id) ?? createBudget(0),
    /** Sends a request by `node:http`: `fetch` would add headers about caches, and resolve the path. */
    async ask(
      path: string,
      headers: Record<string, string | string[]> = {},
      { method = 'GET', body = '' } = {},
    ) {
      const sent = request(exchanges.url, {
        method,
        path: `/api/v1${path}`,
        headers: { Authorization: 'Bearer alice', ...headers },
      });
      sent.end(body);
      // It is called with the response alone.
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      let text = '';
      for await (const chunk of response) text += chunk;
      const given = Object.entries(response.headers).map(([name, value]): [string, string] => [
        name,
        String(value),
      ]);
      return { status: response.statusCode, headers: new Headers(given), body: text };
    },
    close() {
      exchanges.close();
      upstream.close();
    },
  };
  return proxied;
}
