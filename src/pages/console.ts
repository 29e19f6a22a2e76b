/** Serves the console: a page and its files, which the build bundles from the folder `console`. */

import { readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { revalidated, textResponse } from '../http/response.ts';
import { root } from '../root.ts';
import type { DemoTokenFor } from './demoToken.ts';
import { ownFiles, type PageHandler, pageResponse, staticFile } from './page.ts';

/** The folder of the bundle. */
const folder = new URL('dist/console/', root);

/** The name of a file has a digest of its content, so the content never changes. */
const immutable = { 'Cache-Control': 'public, max-age=31536000, immutable' };

/**
 * Serves the same page under the path of every view, and the files that it loads.
 * @param demoTokenFor gives the demo token, with which the sign-in form has a button.
 */
export function createConsole(demoTokenFor: DemoTokenFor, hasGraphiql: boolean): PageHandler {
  const html = readFileSync(new URL('index.html', folder), 'utf8').replace(
    'data-graphiql=""',
    `data-graphiql="${hasGraphiql ? 'on' : 'off'}"`,
  );
  const files = new Map(
    readdirSync(new URL('assets/', folder)).map((name) => [
      `/console/assets/${name}`,
      staticFile(name, () => readFile(new URL(`assets/${name}`, folder)), immutable),
    ]),
  );
  return (exchange) => {
    const { request, path } = exchange;
    if (path.startsWith('/console/assets/'))
      return files.get(path)?.(exchange) ?? textResponse(404, 'Not found. Try /console.');
    // A token consists of letters, digits, `-` and `_`, so it needs no escaping. No other site can read the page.
    const page = html.replace('data-demo-token=""', `data-demo-token="${demoTokenFor(request) ?? ''}"`);
    return revalidated(pageResponse(page, ownFiles), 'Host');
  };
}
