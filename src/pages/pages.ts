/** Everything besides the APIs, by path: pages for browsers, documents for code generators, and probes. */

import { type Config, hasConsole } from '../config/config.ts';
import { isRead } from '../http/requestChecks.ts';
import { textResponse } from '../http/response.ts';
import { printedSchema } from '../schema/schema.ts';
import type { DemoTokenFor } from './demoToken.ts';
import { homePage, navigationTo } from './home.ts';
import type { PageHandler } from './page.ts';
import { staticResponse } from './staticResponse.ts';

export interface PagesOptions {
  readonly config: Pick<
    Config,
    'CONSOLE' | 'GRAPHIQL' | 'INTROSPECTION' | 'PERSISTED_OPERATIONS' | 'UPSTREAM_URL' | 'UPSTREAM_TOKEN'
  >;
  readonly demoTokenFor: DemoTokenFor;
  /** The page at `/readyz`. */
  readonly readiness: PageHandler;
}

/** The pages that the settings allow. Any other path gets a 404. */
export function createPages({ config, demoTokenFor, readiness }: PagesOptions): PageHandler {
  const hasGraphiql = config.GRAPHIQL === 'on';
  const pages = new Map<string, PageHandler>();
  const paths = () => [...pages.keys(), ...(hasGraphiql ? ['/graphql'] : [])];
  pages
    .set('/', (exchange) => homePage(exchange, config, paths(), demoTokenFor(exchange.request)))
    .set('/healthz', () => textResponse(200, 'alive'))
    .set('/readyz', readiness);
  if (hasConsole(config)) {
    const load = () =>
      import('./console.ts').then(({ createConsole }) => createConsole(demoTokenFor, hasGraphiql));
    pages.set('/console', onDemand(load));
  }
  if (config.INTROSPECTION === 'on') {
    const docs = onDemand(async () => {
      const { createDocs } = await import('./docs.ts');
      return createDocs(demoTokenFor, navigationTo(paths(), '/docs'));
    });
    const schema = staticResponse(async () => textResponse(200, printedSchema()));
    pages.set('/openapi.json', docs).set('/docs', docs).set('/schema.graphql', schema);
  }

  return (exchange) => {
    const { path } = exchange;
    // These two have further paths below them.
    const [, parent = path] = /^(\/docs|\/console)\//.exec(path) ?? [];
    const page = pages.get(parent);
    if (!page) return textResponse(404, nothingAt(path));
    exchange.operation = parent === '/openapi.json' ? '/docs' : parent;
    if (!isRead(exchange)) return textResponse(405, 'Only GET and HEAD.', { Allow: 'GET, HEAD' });
    return page(exchange);
  };
}

/** A page that is loaded with its first request: most gateways never get one. */
function onDemand(load: () => Promise<PageHandler>): PageHandler {
  let loaded: Promise<PageHandler> | undefined;
  return async (exchange) => {
    loaded ??= load();
    return (await loaded)(exchange);
  };
}

/** @param path comes from the client, so the response does not repeat it. */
function nothingAt(path: string): string {
  if (path === '/mcp')
    return 'Not found. The setting MCP, which is off, switches the tools for language models on.';
  const isNearGraphql = /^\/+(api\/+)?graphql\/*$/i.test(path);
  const hint = isNearGraphql ? 'GraphQL is at /graphql, without a slash behind it. ' : '';
  return `Not found. ${hint}The home page lists all pages.`;
}
