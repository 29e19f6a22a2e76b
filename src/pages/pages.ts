/** Everything besides the APIs, by path: pages for browsers, documents for code generators, and probes. */

import { readFile } from 'node:fs/promises';
import { STATUS_CODES } from 'node:http';
import type { OpenAPIObject } from 'openapi3-ts/oas31';
import { type Config, hasConsole, publicAddressOf } from '../config/config.ts';
import type { Database } from '../database/database.ts';
import type { ChangeFeed } from '../database/feed/changeFeed.ts';
import { createSharedRuns, resultWithin } from '../database/waiting.ts';
import { failureResponse } from '../http/errorResponse.ts';
import { type Exchange, restPath } from '../http/exchange.ts';
import { isFromBrowser, isRead } from '../http/request.ts';
import { type HttpResponse, textResponse } from '../http/response.ts';
import { root } from '../root.ts';
import { printedSchema } from '../schema/schema.ts';
import type { AccountsElsewhere } from './accounts.ts';
import { createConsole } from './apps.ts';
import { homePage } from './home.ts';
import { headerFor, homeFrom, linkItems, linksFor, type PageSettings, pages } from './links.ts';
import {
  bundledFiles,
  type PageHandler,
  pageResponse,
  staticFile,
  staticResponse,
  type TokenFor,
} from './page.ts';
import { createGuides, createReference } from './reading.ts';
import { escapeHtml, readTemplate } from './template.ts';

interface PagesOptions {
  readonly config: Config;
  readonly database: Pick<Database, 'pool'>;
  readonly feed: Pick<ChangeFeed, 'listening'>;
  /** Set where accounts live elsewhere. */
  readonly accounts?: AccountsElsewhere | undefined;
  /** A line of `/readyz` besides its own. */
  readonly readyLine?: (() => string) | undefined;
  /** Aborted when the gateway is about to close. */
  readonly stopping?: AbortSignal;
  /** Hints for paths that have no page, by path. */
  readonly missingPages?: Readonly<Record<string, string>> | undefined;
}

/** The pages that the settings allow. Any other path gets a 404. */
export function createPages(options: PagesOptions, tokenFor: TokenFor): PageHandler {
  const { config, missingPages = {} } = options;
  const graphql = publicAddressOf(config, '/graphql');
  const pages = new Map<string, PageHandler>()
    .set('/', (exchange) => homePage(exchange, config, tokenFor(exchange.request), options.accounts))
    .set(
      '/favicon.ico',
      staticFile('icon.svg', () => readFile(new URL('src/pages/icon.svg', root)), {
        'Cache-Control': 'public, max-age=86400',
      }),
    )
    .set('/healthz', () => textResponse(200, 'alive'))
    .set('/readyz', createReadiness(options));
  pages.set(
    '/guides',
    onDemand(async () => createGuides(config)),
  );
  if (hasConsole(config)) {
    const console = onDemand(() => createConsole(tokenFor, config));
    pages.set('/console', console);
  }
  const explorer = onDemand(async () => bundledFiles('explorer', '/graphiql', graphql));
  if (config.GRAPHIQL === 'on') pages.set('/graphiql', explorer);
  if (config.INTROSPECTION === 'on') {
    pages
      .set('/docs', createReference('/docs', tokenFor, config))
      .set('/schema', createReference('/schema', tokenFor, config))
      .set(
        '/openapi.json',
        staticFile('openapi.json', () => openApiDocument(config)),
      )
      .set(
        '/schema.graphql',
        staticResponse(async () => textResponse(200, printedSchema())),
      );
  }

  async function respond(exchange: Exchange): Promise<HttpResponse> {
    const { path } = exchange;
    const bare = path.slice(0, -1);
    // The console's links work with a slash as well. Those of other pages would lead a level too deep.
    if (path.endsWith('/') && bare !== '/console' && pages.has(bare))
      return textResponse(308, 'The address of this page has no slash at its end.', {
        Location: `..${bare}`,
      });
    // These have more paths below them.
    const [, parent = path] = /^(\/guides|\/console|\/graphiql)\//.exec(path) ?? [];
    const page = pages.get(parent);
    // The path comes from the client, so the response does not repeat it.
    if (!page)
      return textResponse(404, `Not found. ${missingPages[path] ?? 'The home page lists all pages.'}`);
    exchange.operation = parent;
    if (!isRead(exchange)) return textResponse(405, 'Only GET and HEAD.', { Allow: 'GET, HEAD' });
    return page(exchange);
  }
  return async (exchange) => {
    const response = await respond(exchange).catch((error: unknown) => failureResponse(exchange, error));
    return response.status < 400 ? response : withErrorPage(exchange, response, config);
  };
}

/** The OpenAPI document, with the address of this gateway. */
async function openApiDocument(settings: PageSettings): Promise<string> {
  const document: Pick<OpenAPIObject, 'servers'> = JSON.parse(
    await readFile(new URL('openapi.json', root), 'utf8'),
  );
  for (const server of document.servers ?? []) server.url = publicAddressOf(settings, restPath);
  return JSON.stringify(document);
}

/** A page that is loaded with its first request. Most gateways never get one. */
function onDemand(load: () => Promise<PageHandler>): PageHandler {
  let loaded: PageHandler | undefined;
  return async (exchange) => {
    // A load that fails is tried again by the next request.
    loaded ??= await load();
    return loaded(exchange);
  };
}

/** How long, in milliseconds, the database may take to respond to a probe. */
const probeTimeout = 2_000;

/** The page at `/readyz`. Extensions report their state there. A gateway is ready whatever they say. */
function createReadiness({ database: { pool }, feed, readyLine, stopping }: PagesOptions): PageHandler {
  const asking = createSharedRuns(() => resultWithin(probeTimeout, pool.query('SELECT 1')));
  return async () => {
    if (stopping?.aborted) return textResponse(503, 'stopping');
    // Concurrent probes share one query: a probe needs no token, so there may be many.
    const isReady = (await (asking.current ?? asking.begin())) !== undefined;
    const lines = [isReady ? 'ready' : 'the database cannot be reached'];
    if (!feed.listening) lines.push('change feed down; caching off');
    if (readyLine) lines.push(readyLine());
    return textResponse(isReady ? 200 : 503, lines.join('\n'));
  };
}

const errorPage = readTemplate('error.html');

/** The error, as a page if a browser has asked for one. @param response the error as text. */
function withErrorPage(
  exchange: Exchange,
  { status, headers: given, ...response }: HttpResponse,
  settings: PageSettings,
): HttpResponse {
  const headers = { ...given, Vary: 'Accept, Authorization' };
  if (!isFromBrowser(exchange)) return { ...response, status, headers };
  const title = STATUS_CODES[status] ?? '';
  const text = response.body.toString().replace('Not found.', 'There is no page at this address.');
  const lines = text.replace(' The home page lists all pages.', '').trim().split('\n');
  if (status >= 500) lines.push(`Try again in a moment. The log names this request \`${exchange.id}\`.`);
  const says = lines.map((line) => `<p>${escapeHtml(line)}</p>`).join('\n');
  const home = homeFrom(exchange.path);
  const links = linkItems(linksFor(settings, pages), home);
  const header = headerFor(settings, exchange.path);
  const html = errorPage.fill({ header, home, status: String(status), title, says, links });
  const page = pageResponse(html, errorPage.policy);
  return { ...page, status, headers: { ...headers, ...page.headers, 'Cache-Control': 'no-store' } };
}
