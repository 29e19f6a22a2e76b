/** GraphiQL: one page of the package, with an example in each tab. It loads nothing from other servers. */

import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { GraphiQLOptions } from 'graphql-yoga';
import type { HttpResponse } from '../http/response.ts';
import type { DemoTokenFor } from '../pages/demoToken.ts';
import { type PageHandler, pageByToken, pageResponse } from '../pages/page.ts';
import { icon } from '../pages/template.ts';
import { root } from '../root.ts';

/** The tabs, in order: each is a document in the folder `examples`. */
export const examples = ['devices', 'activeTemplate', 'lockHistory', 'activate', 'follow'].map((name) =>
  readFileSync(new URL(`src/graphql/examples/${name}.graphql`, root), 'utf8'),
);

/** @param demoTokenFor returns the token that GraphiQL sends by default, if there is one for the request. */
export const createExplorer = (demoTokenFor: DemoTokenFor): PageHandler =>
  pageByToken(demoTokenFor, 'Accept, Accept-Encoding, Authorization, Host', render);

async function render(demoToken: string | undefined): Promise<HttpResponse> {
  // The module has many megabytes, so it is loaded by the first request.
  const { renderGraphiQL } = await import('@graphql-yoga/render-graphiql');
  const headers = demoToken === undefined ? ownToken : otherToken("The demo account's token");
  const options: GraphiQLOptions = {
    title: 'Dovetail',
    defaultTabs: examples.map((query) => ({ query, headers })),
    defaultHeaders: headers,
    defaultEditorToolsVisibility: 'headers',
    // Not in the tabs: the browser stores them, possibly for longer than the demo account exists.
    ...(demoToken !== undefined && { additionalHeaders: { Authorization: `Bearer ${demoToken}` } }),
  };
  const html = renderGraphiQL(options)
    .trimStart()
    .replace(/<link rel="icon"[^>]*>/, pageHead)
    .replace('</head>', `<style>${style}</style></head>`)
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

/** The mark of all pages instead of GraphiQL's, and a page as wide as the screen of a telephone. */
const pageHead = `<link rel="icon" href="data:image/svg+xml,${icon}"><meta name="viewport" content="width=device-width, initial-scale=1">`;

/**
 * The first rule: GraphiQL moves a tab away when it is first pressed, so that the click is lost. The second hides Yoga's
 * logo. The others put the response below the query on a telephone.
 */
const style = `
.graphiql-tab { transform: none !important }
.graphiql-logo div:has(> svg) { display: none !important }
@media (width < 48rem) {
  #graphiql-session { flex-direction: column }
  #graphiql-session > * { width: 100%; min-height: 0 }
  .graphiql-horizontal-drag-bar { display: none }
}`;

/** The text of a tab's headers editor, which may contain comments. */
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
 * A function that runs in the browser when the page is opened. It adapts the options to three things: the address, which may have
 * a query and its variables (links of the console do); the tabs that GraphiQL has stored; and the token of a user who is
 * signed in to the console in the same tab of the browser (`console/src/session.ts`).
 *
 * GraphiQL selects a stored tab only if its query, variables and headers are given exactly, and adds a new tab otherwise,
 * even an empty one. If no tabs are stored, it gives the query in the options the title of the first tab.
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

/** The text of the page's only script. The content security policy has its hash. */
function scriptIn(html: string): string {
  const start = '<script>';
  return html.slice(html.indexOf(start) + start.length, html.lastIndexOf('</script>'));
}
