/** Everything besides the APIs, by path: pages for browsers, documents for code generators, and probes. */

import { type Config, hasConsole } from '../config/config.ts';
import { isRead } from '../http/requestChecks.ts';
import { textResponse } from '../http/response.ts';
import { printedSchema } from '../schema/schema.ts';
import type { DemoTokenFor } from './demoToken.ts';
import { homePage } from './home.ts';
import type { PageHandler } from './page.ts';
import { staticResponse } from './staticResponse.ts';

export interface PagesOptions {
  readonly config: Pick<
    Config,
    | 'CONSOLE'
    | 'GRAPHIQL'
    | 'INTROSPECTION'
    | 'PERSISTED_OPERATIONS'
    | 'DATABASE_URL'
    | 'UPSTREAM_URL'
    | 'UPSTREAM_TOKEN'
  >;
  readonly demoTokenFor: DemoTokenFor;
  /** The page at `/readyz`. */
  readonly readiness: PageHandler;
}

/** The pages that the settings allow. Any other path gets a 404. */
export function createPages({ config, demoTokenFor, readiness }: PagesOptions): PageHandler {
  /** Loaded with the first request: most gateways never get one for their reference. */
  let loadedDocs: Promise<PageHandler> | undefined;
  const docs: PageHandler = async (exchange) => {
    loadedDocs ??= import('./docs.ts').then(({ createDocs }) => createDocs(demoTokenFor));
    return (await loadedDocs)(exchange);
  };
  const onServer = config.DATABASE_URL !== undefined;
  const takesUpstreamTokens = config.UPSTREAM_URL !== undefined && config.UPSTREAM_TOKEN === undefined;
  const pages = new Map<string, PageHandler>([
    [
      '/',
      (exchange) => {
        const demoToken = demoTokenFor(exchange.request);
        return homePage(exchange, { demoToken, isThere, onServer, takesUpstreamTokens });
      },
    ],
    ['/healthz', () => textResponse(200, 'alive')],
    ['/readyz', readiness],
  ]);
  if (hasConsole(config)) {
    const options = { demoTokenFor, hasGraphiql: config.GRAPHIQL === 'on' };
    let loadedConsole: Promise<PageHandler> | undefined;
    pages.set('/console', async (exchange) => {
      loadedConsole ??= import('./console.ts').then(({ createConsole }) => createConsole(options));
      return (await loadedConsole)(exchange);
    });
  }
  if (config.INTROSPECTION === 'on') {
    pages.set('/openapi.json', docs).set('/docs', docs);
    pages.set(
      '/schema.graphql',
      staticResponse(async () => textResponse(200, printedSchema())),
    );
  }

  function isThere(path: string): boolean {
    return path === '/graphql' ? config.GRAPHIQL === 'on' : pages.has(path);
  }

  return (exchange) => {
    const { path } = exchange;
    // These two have further paths below them.
    const [, parent] = /^(\/docs|\/console)\//.exec(path) ?? [];
    const page = pages.get(parent ?? path);
    if (!page) return textResponse(404, nothingAt(path));
    exchange.operation = page === docs ? '/docs' : (parent ?? path);
    if (!isRead(exchange)) return textResponse(405, 'Only GET and HEAD.', { Allow: 'GET, HEAD' });
    return page(exchange);
  };
}

/** @param path comes from the client, so the response does not repeat it. */
function nothingAt(path: string): string {
  const hint = /^\/+(api\/+)?graphql\/*$/i.test(path)
    ? 'GraphQL is at /graphql, without a slash behind it. '
    : '';
  return `Not found. ${hint}The home page lists all pages.`;
}
