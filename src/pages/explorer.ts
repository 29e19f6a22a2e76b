/** GraphiQL: a page that the build bundles from the folder `explorer`. */

import { headerFor, type PageSettings } from './links.ts';
import { bundledPage, ownFiles, type PageHandler, pageByToken, pageResponse, type TokenFor } from './page.ts';

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
