/** GraphiQL, whole from the package: one page with an example in each tab, and nothing from anywhere else. */

import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { GraphiQLOptions } from 'graphql-yoga';
import type { HttpResponse } from '../http/response.ts';
import type { DemoTokenFor } from '../pages/demoToken.ts';
import { type PageHandler, pageResponse } from '../pages/page.ts';
import { staticResponse } from '../pages/staticResponse.ts';

/** The tabs, in order: each is a document in the folder `examples`. */
export const examples = ['devices', 'activeTemplate', 'lockHistory', 'activate', 'follow'].map((name) =>
  readFileSync(new URL(`examples/${name}.graphql`, import.meta.url), 'utf8'),
);

/** @param demoTokenFor gives the token that GraphiQL asks with. */
export function createExplorer(demoTokenFor: DemoTokenFor): PageHandler {
  const pages = new Map<string | undefined, PageHandler>();
  return (exchange) => {
    const demoToken = demoTokenFor(exchange.request);
    const page =
      pages.get(demoToken) ??
      staticResponse(() => render(demoToken), 'Accept, Accept-Encoding, Authorization, Host');
    pages.set(demoToken, page);
    return page(exchange);
  };
}

async function render(demoToken: string | undefined): Promise<HttpResponse> {
  // Many megabytes, so it is loaded for the first request only.
  const { renderGraphiQL } = await import('@graphql-yoga/render-graphiql');
  const headers = demoToken === undefined ? ownToken : otherToken("The demo account's token");
  const options: GraphiQLOptions = {
    title: 'Dovetail',
    defaultTabs: examples.map((query) => ({ query, headers })),
    defaultHeaders: headers,
    defaultEditorToolsVisibility: 'headers',
    // Not in the tabs, which the browser remembers for longer than a demo account may live.
    ...(demoToken !== undefined && { additionalHeaders: { Authorization: `Bearer ${demoToken}` } }),
  };
  const html = renderGraphiQL(options)
    .trimStart()
    .replace('</head>', `<style>${stillTabs}</style></head>`)
    .replace(JSON.stringify(options), (written) => `(${asOpened})(${written})`);
  return pageResponse(html, {
    'script-src': `'sha256-${hash('sha256', scriptIn(html), 'base64')}'`,
    'style-src': "'unsafe-inline'",
    'img-src': 'data:',
    'font-src': 'data:',
    'worker-src': 'blob:',
    'connect-src': "'self'",
  });
}

/**
 * Until they are dragged, GraphiQL's tabs move to another place when they are pressed, away from under the pointer, and
 * the first click on each is lost.
 */
const stillTabs = '.graphiql-tab { transform: none !important }';

/** The text of a tab's headers pane, which may have comments. */
const ownToken = `// Your API token goes here, in place of
// YOUR_API_TOKEN.
{
  "Authorization": "Bearer YOUR_API_TOKEN"
}
`;
const otherToken = (whose: string) => `// ${whose} is sent unless
// there is another one here, such as
// { "Authorization": "Bearer YOUR_API_TOKEN" }
`;

/**
 * Changes the options as the page is opened: by the address, in which a link of the console has a query with its variables,
 * by the tabs that GraphiQL has stored, and by the token of who is signed in to the console in this tab of the browser
 * (`console/src/session.ts`).
 *
 * GraphiQL opens a stored tab only if it is given exactly what that has, and adds another one otherwise, be it empty. Where
 * none are stored, it calls what it is given like the first of the tabs.
 */
const asOpened = `(options) => {
  const address = new URLSearchParams(location.search);
  const query = address.get('query') || null;
  const variables = address.get('variables');
  let stored = null;
  let token = null;
  try {
    token = sessionStorage.getItem('dovetail-token');
    stored = JSON.parse(localStorage.getItem('graphiql:tabState'));
  } catch {}
  const fits = (tab) =>
    query === null || (tab?.query === query && (variables === null || tab.variables === variables));
  const tab = stored?.tabs && [stored.tabs[stored.activeTabIndex], ...stored.tabs].find(fits);
  if (tab) {
    Object.assign(options, { query: tab.query ?? '', variables: tab.variables ?? '', initialHeaders: tab.headers ?? '' });
  } else if (query !== null) {
    options.variables = variables ?? '';
    options.defaultTabs.unshift({ query, variables: options.variables, headers: options.defaultHeaders });
  }
  if (variables) options.defaultEditorToolsVisibility = 'variables';
  if (token) {
    options.additionalHeaders = { Authorization: 'Bearer ' + token };
    options.defaultHeaders = ${JSON.stringify(otherToken("The console's token in this tab"))};
    for (const each of options.defaultTabs) each.headers = options.defaultHeaders;
  }
  return options;
}`;

/** The one script of the page, exactly as it stands there: its hash goes into the policy. */
function scriptIn(html: string): string {
  const start = '<script>';
  return html.slice(html.indexOf(start) + start.length, html.lastIndexOf('</script>'));
}
