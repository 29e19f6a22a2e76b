/** The console and GraphiQL: pages with their files, which the build bundles from the folders `console` and `explorer`. */

import { publicAddressOf } from '../config/config.ts';
import { revalidated } from '../http/response.ts';
import { hasGraphiql, hasReferences, headerFor, homeFrom, type PageSettings } from './links.ts';
import {
  bundledFiles,
  bundledPage,
  ownFiles,
  type PageHandler,
  pageByToken,
  pageResponse,
  type TokenFor,
} from './page.ts';

/**
 * Serves the same page under the path of every view, and the files that it loads.
 * @param tokenFor gives the demo token, with which the sign-in form has a button.
 */
export async function createConsole(tokenFor: TokenFor, settings: PageSettings): Promise<PageHandler> {
  const onOrOff = (isOn: boolean) => (isOn ? 'on' : 'off');
  const html = (await bundledPage('console'))
    .replace('data-graphiql=""', `data-graphiql="${onOrOff(hasGraphiql(settings))}"`)
    .replace('data-references=""', `data-references="${onOrOff(hasReferences(settings))}"`);
  const files = bundledFiles('console', '/console', publicAddressOf(settings, '/console'));
  return (exchange) => {
    const { request, path } = exchange;
    if (path.startsWith('/console/assets/')) return files(exchange);
    // A token consists of letters, digits, `-` and `_`, so it needs no escaping. No other site can read the page.
    const page = html
      .replace('data-demo-token=""', `data-demo-token="${tokenFor(request) ?? ''}"`)
      .replaceAll('"./', `"${homeFrom(path)}console/`);
    return revalidated(pageResponse(page, ownFiles), 'Host');
  };
}

/** @param tokenFor returns the token that GraphiQL sends by default, if there is one for the request. */
export function createExplorer(tokenFor: TokenFor, settings: PageSettings): PageHandler {
  // GraphiQL makes styles of its own while it runs.
  const policy = { ...ownFiles, 'style-src': "'self' 'unsafe-inline'" };
  return pageByToken(tokenFor, 'Accept, Accept-Encoding, Authorization, Host', async (token = '') => {
    const page = (await bundledPage('explorer'))
      .replaceAll('"./', '"./graphiql/')
      .replace('<!--header-->', headerFor(settings, '/graphql'))
      .replace('data-demo-token=""', `data-demo-token="${token}"`);
    return pageResponse(page, policy);
  });
}
