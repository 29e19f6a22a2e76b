/** A proxy in front of an upstream whose responses a test decides, over real HTTP. */

import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import type { Viewer } from '../../../../src/auth/viewer.ts';
import { createBudget } from '../../../../src/extensions/upstream/client/budget.ts';
import { createTurns } from '../../../../src/extensions/upstream/client/turns.ts';
import { messages } from '../../../../src/extensions/upstream/messages.ts';
import { createProxy, type ProxyOptions } from '../../../../src/extensions/upstream/proxy/proxy.ts';
import type { Exchange } from '../../../../src/http/exchange.ts';
import { send } from '../../../../src/http/send.ts';
import { openExchanges } from '../../../support/exchanges.ts';
import { createFakeFeed } from '../../../support/feed.ts';
import { openScripted } from '../support/scripted.ts';

/** The account of a client's token: one of the upstream, or one of the gateway's own. */
const accountOf = (token: string) => (token === 'bob' ? 2 : token.endsWith('alice') ? 1 : 3);

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
  const turns = new Map([1, 2].map((id) => [id, createInTurn()]));
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
        const [budget, inTurn] = [budgets.get(id), turns.get(id)];
        const token = tokensOf.get(viewer) ?? '';
        return (
          budget &&
          inTurn && {
            accountId: id,
            token: `token of ${token}`,
            budget,
            inTurn,
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
      id: accountOf(token),
      tokenId: token.startsWith('own') ? 1 : undefined,
      scope: token.includes('reader') ? 'read' : 'activate',
    } as const;
    tokensOf.set(viewer, token);
    const narrowed = token.includes('narrowed') ? ({ ...viewer, scope: 'read' } as const) : viewer;
    const now = token.includes('ended') ? null : narrowed;
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
      const given = new Headers();
      for (const [name, value] of Object.entries(response.headers)) given.set(name, String(value));
      return { status: response.statusCode, headers: given, body: text };
    },
    close() {
      exchanges.close();
      upstream.close();
    },
  };
  return proxied;
}
