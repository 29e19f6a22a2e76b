/** The first page: what runs here, and where everything is. */

import { hash } from 'node:crypto';
import { asksForPage, type Exchange } from '../http/exchange.ts';
import { type HttpResponse, textResponse } from '../http/response.ts';
import { pageResponse } from './page.ts';

/** Everything that can be looked at in a browser. */
export const places = [
  { path: '/graphql', name: 'GraphiQL', what: 'ask in GraphQL, with examples, docs and completion' },
  { path: '/docs', name: 'REST reference', what: 'every route of the REST interface, to read and to try' },
  { path: '/openapi.json', name: 'OpenAPI', what: 'the same as a document, for code generators' },
  { path: '/schema.graphql', name: 'Schema', what: 'all of GraphQL in one text, for code generators' },
  { path: '/healthz', name: 'Health', what: 'whether the process is alive' },
  { path: '/readyz', name: 'Readiness', what: 'whether the database can be reached' },
];

const question = '{"query":"{ viewer { username } }"}';
const summary = 'A GraphQL gateway over trainer devices, training programs and lock sessions.';

/**
 * As a page for browsers, as text for terminals.
 * @param demoToken that of the demo account, where there is one that the client may see.
 * @param isThere whether there is a page at a path: settings may have switched it off.
 */
export function homePage(
  exchange: Exchange,
  demoToken: string | undefined,
  isThere: (path: string) => boolean,
): HttpResponse {
  const here = places.filter(({ path }) => isThere(path));
  const commands = commandsFor(exchange.request.headers.host, demoToken);
  return asksForPage(exchange) ? asPage(here, commands) : asText(here, commands);
}

/** A request to each API, as one types it into a terminal. */
function commandsFor(host = '', demoToken = 'YOUR_API_TOKEN'): string[] {
  // What a client says of the host goes into the response, so it has to look like one.
  const address = /^[\w.:[\]-]+$/.test(host) ? host : 'localhost:4000';
  const authorization = `-H 'Authorization: Bearer ${demoToken}'`;
  return [
    [`curl ${address}/graphql`, authorization, "-H 'Content-Type: application/json'", `-d '${question}'`],
    [`curl ${address}/api/v1/dtt/templates/active`, authorization],
  ].map((parts) => parts.join(' \\\n  '));
}

/** What the response depends on. */
const headers = { Vary: 'Accept, Host' };

function asText(here: typeof places, commands: readonly string[]): HttpResponse {
  const list = here.map(({ path, what }) => `  ${path.padEnd(16)} ${what}`);
  return textResponse(200, ['Dovetail', summary, '', ...list, '', ...commands].join('\n'), {
    ...headers,
    'Cache-Control': 'private, no-cache',
  });
}

function asPage(here: typeof places, commands: readonly string[]): HttpResponse {
  const list = here.map(
    ({ path, name, what }) => `<li><a href="${path}">${name}</a> <span>${what}</span></li>`,
  );
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>Dovetail</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body>
<main>
<h1>Dovetail</h1>
<p>${summary} The older REST interface is at <code>/api/v1</code>, over the same data.</p>
<nav aria-label="What is here"><ul>
${list.join('\n')}
</ul></nav>
<h2>From a terminal</h2>
${commands.map((command) => `<pre tabindex="0"><code>${command}</code></pre>`).join('\n')}
</main>
</body>
</html>`;
  const policy = { 'style-src': `'sha256-${hash('sha256', style, 'base64')}'`, 'img-src': 'data:' };
  return pageResponse(html, policy, headers);
}

const style = `
body { font: 1rem/1.6 system-ui, sans-serif; margin: 0; background: Canvas; color: CanvasText }
main { max-width: 42rem; margin: 0 auto; padding: 3rem 1.5rem }
h1 { margin: 0 }
h2 { margin: 2rem 0 0; font-size: 1.1rem }
ul { list-style: none; margin: 2rem 0 0; padding: 0 }
li { padding: .5rem 0; border-top: 1px solid color-mix(in srgb, CanvasText 15%, Canvas) }
a { color: LinkText; font-weight: 600 }
li span { display: block }
pre { overflow-x: auto; padding: 1rem; border-radius: .4rem; background: color-mix(in srgb, CanvasText 7%, Canvas) }
`;
