/** The console: a page and its files, bundled from the folder `console` by the build. It uses the GraphQL API like any other client. */

import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { textResponse } from '../http/response.ts';
import type { DemoTokenFor } from './demoToken.ts';
import { type PageHandler, pageResponse } from './page.ts';
import { staticResponse } from './staticResponse.ts';

/** Where the build puts it; seen from `src` as well as from `dist`. */
const folder = new URL('../../dist/console/', import.meta.url);

const types = new Map([
  ['.css', 'text/css; charset=utf-8'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.svg', 'image/svg+xml'],
]);

/** What the page may load: its own files, and what the gateway responds, over HTTP and WebSocket. */
const policy = {
  'script-src': "'self'",
  'style-src': "'self'",
  'img-src': "'self'",
  'connect-src': "'self'",
};

/** A file's name has a digest of what is in it, so it never changes. */
const forever = { 'Cache-Control': 'public, max-age=31536000, immutable' };

export interface ConsoleOptions {
  /** Gives the token that the form to sign in has at hand. */
  readonly demoTokenFor: DemoTokenFor;
  readonly hasGraphiql: boolean;
}

/** The page under every path of a view, and the files that it loads. */
export function createConsole({ demoTokenFor, hasGraphiql }: ConsoleOptions): PageHandler {
  const pages = new Map<string | undefined, PageHandler>();
  const files = new Map(
    readdirSync(new URL('assets/', folder)).map((name) => [`/console/assets/${name}`, file(name)]),
  );

  return (exchange) => {
    const { request, path } = exchange;
    if (path.startsWith('/console/assets/')) {
      const found = files.get(path);
      return found ? found(exchange) : textResponse(404, 'Nothing is here. Try /console.');
    }
    const demoToken = demoTokenFor(request);
    let page = pages.get(demoToken);
    if (!page) {
      page = staticResponse(() => render(demoToken, hasGraphiql), 'Accept-Encoding, Host');
      pages.set(demoToken, page);
    }
    return page(exchange);
  };
}

/** @param demoToken letters, digits, `-` and `_`. It stands in the page, which only the page itself can read. */
async function render(demoToken: string | undefined, hasGraphiql: boolean) {
  const html = await readFile(new URL('index.html', folder), 'utf8');
  return pageResponse(
    html
      .replace('data-demo-token=""', `data-demo-token="${demoToken ?? ''}"`)
      .replace('data-graphiql=""', `data-graphiql="${hasGraphiql ? 'on' : 'off'}"`),
    policy,
  );
}

function file(name: string): PageHandler {
  return staticResponse(
    async () => {
      const body = await readFile(new URL(`assets/${name}`, folder));
      const headers = {
        'Content-Type': types.get(extname(name)) ?? 'application/octet-stream',
        'Content-Length': body.length,
        'X-Content-Type-Options': 'nosniff',
      };
      return { status: 200, headers, body };
    },
    'Accept-Encoding',
    forever,
  );
}
