/** Serves the console: a page and its files, which the build bundles from the folder `console`. */

import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { textResponse } from '../http/response.ts';
import { root } from '../root.ts';
import type { DemoTokenFor } from './demoToken.ts';
import { type PageHandler, pageResponse } from './page.ts';
import { staticResponse } from './staticResponse.ts';

/** The folder of the bundle. */
const folder = new URL('dist/console/', root);

const types = new Map([
  ['.css', 'text/css; charset=utf-8'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.svg', 'image/svg+xml'],
]);

/** The page may load its own files, and connect to the gateway over HTTP and WebSocket. */
const policy = {
  'script-src': "'self'",
  'style-src': "'self'",
  'img-src': "'self'",
  'connect-src': "'self'",
};

/** The name of a file has a digest of its content, so the content never changes. */
const immutable = { 'Cache-Control': 'public, max-age=31536000, immutable' };

export interface ConsoleOptions {
  /** Gives the demo token, with which the sign-in form has a button. */
  readonly demoTokenFor: DemoTokenFor;
  readonly hasGraphiql: boolean;
}

/** Serves the same page under the path of every view, and the files that it loads. */
export function createConsole({ demoTokenFor, hasGraphiql }: ConsoleOptions): PageHandler {
  const pages = new Map<string | undefined, PageHandler>();
  const files = new Map(
    readdirSync(new URL('assets/', folder)).map((name) => [`/console/assets/${name}`, file(name)]),
  );

  return (exchange) => {
    const { request, path } = exchange;
    if (path.startsWith('/console/assets/')) {
      const found = files.get(path);
      return found ? found(exchange) : textResponse(404, 'Not found. Try /console.');
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

/** @param demoToken consists of letters, digits, `-` and `_`, so it needs no escaping. No other site can read the page. */
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
      };
      return { status: 200, headers, body };
    },
    'Accept-Encoding',
    immutable,
  );
}
