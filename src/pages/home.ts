/** The first page: what runs here, links to everything, and the first requests to try. */

import { hash } from 'node:crypto';
import { type Config, program } from '../config/config.ts';
import type { Exchange } from '../http/exchange.ts';
import { asksForPage } from '../http/request.ts';
import { type HttpResponse, textResponse } from '../http/response.ts';
import { interfaceVersion, release } from '../version.ts';
import { pageResponse } from './page.ts';

/** Everything that can be opened in a browser. The probes are for programs, rather than for people. */
export const allLinks = [
  { path: '/console', name: 'Console', what: 'look at devices, programs, history and locks, live' },
  { path: '/graphql', name: 'GraphiQL', what: 'ask in GraphQL, with examples, docs and completion' },
  { path: '/docs', name: 'REST reference', what: 'every route of the REST interface, to read and to try' },
  { path: '/openapi.json', name: 'OpenAPI', what: 'the same as a document, for code generators' },
  { path: '/schema.graphql', name: 'Schema', what: 'all of GraphQL in one text, for code generators' },
  { path: '/healthz', name: 'Health', what: 'whether the process is alive' },
  { path: '/readyz', name: 'Readiness', what: 'whether the database can be reached' },
];

const summary = 'A GraphQL gateway over trainer devices, training programs and lock sessions.';
const versions = `Dovetail ${release}, with version ${interfaceVersion} of the REST interface`;

/** The request headers that the response depends on. */
const headers = { Vary: 'Accept, Authorization, Host' };

/**
 * The page as HTML for browsers, and as text for terminals.
 * @param paths those that there are: settings switch some off.
 * @param demoToken the token of the demo account, if there is one and the client may see it.
 */
export function homePage(
  exchange: Exchange,
  config: Pick<Config, 'PERSISTED_OPERATIONS' | 'UPSTREAM_URL' | 'UPSTREAM_TOKEN'>,
  paths: readonly string[],
  demoToken: string | undefined,
): HttpResponse {
  const hasOnlyPersisted = config.PERSISTED_OPERATIONS === 'only';
  const links = allLinks.filter(
    ({ path }) => paths.includes(path) && !(path === '/graphql' && hasOnlyPersisted),
  );
  // The Host header of the client goes into the response, so only characters of a host are allowed.
  const { host = '' } = exchange.request.headers;
  const address = /^[\w.:[\]-]+$/.test(host) ? host : 'localhost:4000';
  const requests = requestsTo(address, demoToken ?? 'YOUR_API_TOKEN');
  const commands = hasOnlyPersisted ? requests.slice(1) : requests;
  const { UPSTREAM_URL, UPSTREAM_TOKEN } = config;
  const takesUpstreamTokens = UPSTREAM_URL !== undefined && UPSTREAM_TOKEN === undefined;
  const use = takesUpstreamTokens ? 'Use the token that you have for the service behind this gateway. ' : '';
  const createToken = `${program()} token create --user NAME --name first`;
  const tokens: [says: string, code: string][] = [
    [`${use}A token for a user, with the settings of the gateway:`, createToken],
  ];
  if (demoToken !== undefined) tokens.unshift(['The token of the demo account:', demoToken]);
  // In front of an upstream the accounts are those of the upstream.
  else if (UPSTREAM_URL === undefined)
    tokens.push(['The demo account and its token, in a database without users:', `${program()} demo`]);
  if (asksForPage(exchange)) return asPage(links, tokens, commands);
  const lines = [
    versions,
    summary,
    '',
    ...links.map(({ path, what }) => `  ${path.padEnd(16)} ${what}`),
    '',
    ...tokens.flatMap(([says, command]) => [says, `  ${command}`, '']),
    ...commands,
  ];
  return textResponse(200, lines.join('\n'), { ...headers, 'Cache-Control': 'private, no-cache' });
}

/** A request to each API, as a shell command. */
function requestsTo(address: string, token: string): string[] {
  const authorization = `-H 'Authorization: Bearer ${token}'`;
  const body = `-d '${JSON.stringify({ query: '{ viewer { username } }' })}'`;
  return [
    [`curl ${address}/graphql`, authorization, "-H 'Content-Type: application/json'", body],
    [`curl ${address}/api/v1/dtt/templates/active`, authorization],
  ].map((parts) => parts.join(' \\\n  '));
}

/** @param tokens what is a token or gives one, each with what that is called. */
function asPage(
  links: typeof allLinks,
  tokens: readonly [says: string, code: string][],
  commands: readonly string[],
): HttpResponse {
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
<h1>Dovetail</h1>
<p>${summary} The older REST interface is at <code>/api/v1</code>, over the same data.</p>
<nav aria-label="What is here"><ul>
${links.map(({ path, name, what }) => `<li><a href="${path}">${name}</a> ${what}</li>`).join('\n')}
</ul></nav>
<main>
<h2>A token</h2>
<p>Every request needs one.</p>
${tokens.map(([says, code]) => `<p>${says}</p>\n${copyable(code)}`).join('\n')}
<h2>From a terminal</h2>
${commands.map(copyable).join('\n')}
</main>
<footer>${versions}</footer>
<script type="module">${script}</script>
</body>
</html>`;
  const sourceOf = (text: string) => `'sha256-${hash('sha256', text, 'base64')}'`;
  const policy = { 'style-src': sourceOf(style), 'script-src': sourceOf(script), 'img-src': 'data:' };
  return pageResponse(html, policy, headers);
}

/** Code with a button that copies it. None of it has a character that HTML takes for its own. */
const copyable = (code: string) =>
  `<div><pre tabindex="0"><code>${code}</code></pre><button hidden>Copy</button></div>`;

/** Makes the buttons copy. The page is complete without it. */
const script = `
for (const button of navigator.clipboard ? document.querySelectorAll('button') : []) {
  button.hidden = false;
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(button.previousElementSibling.textContent);
    button.textContent = 'Copied';
    setTimeout(() => { button.textContent = 'Copy' }, 2000);
  });
}
`;

const style = `
body { font: 1rem/1.6 system-ui, sans-serif; max-width: 42rem; margin: 0 auto; padding: 2rem 1.5rem }
li a { font-weight: 600 }
pre, code { white-space: pre-wrap; overflow-wrap: anywhere }
`;
