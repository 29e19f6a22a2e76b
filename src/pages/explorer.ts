/** GraphiQL: a page that the build bundles from the folder `explorer`. */

import type { DemoTokenFor } from './demoToken.ts';
import { headerFor, type PageSettings } from './links.ts';
import { bundledPage, ownFiles, type PageHandler, pageByToken, pageResponse } from './page.ts';

/** @param demoTokenFor returns the token that GraphiQL sends by default, if there is one for the request. */
export function createExplorer(demoTokenFor: DemoTokenFor, settings: PageSettings): PageHandler {
  // GraphiQL makes styles of its own while it runs.
  const policy = { ...ownFiles, 'style-src': "'self' 'unsafe-inline'" };
  return pageByToken(demoTokenFor, 'Accept, Accept-Encoding, Authorization, Host', async (token = '') => {
    const page = (await bundledPage('explorer'))
      .replaceAll('"./', '"./graphiql/')
      .replace('<!--header-->', headerFor(settings, '/graphql'))
      .replace('data-demo-token=""', `data-demo-token="${token}"`);
    return pageResponse(page, policy);
  });
}
