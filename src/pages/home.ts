/** The first page: what runs here, links to everything, and the first requests to try. */

import { hash } from 'node:crypto';
import type { Exchange } from '../http/exchange.ts';
import { asksForPage } from '../http/requestChecks.ts';
import { type HttpResponse, textResponse } from '../http/response.ts';
import { release } from '../version.ts';
import { pageResponse } from './page.ts';

interface Link {
  readonly path: string;
  readonly name: string;
  readonly what: string;
  /** Whether it is for programs that monitor the gateway, rather than for people. */
  readonly isProbe?: boolean;
}

/** Everything that can be opened in a browser. */
export const allLinks: readonly Link[] = [
  { path: '/console', name: 'Console', what: 'look at devices, programs, history and locks, live' },
  { path: '/graphql', name: 'GraphiQL', what: 'ask in GraphQL, with examples, docs and completion' },
  { path: '/docs', name: 'REST reference', what: 'every route of the REST interface, to read and to try' },
  { path: '/openapi.json', name: 'OpenAPI', what: 'the same as a document, for code generators' },
  { path: '/schema.graphql', name: 'Schema', what: 'all of GraphQL in one text, for code generators' },
  { path: '/healthz', name: 'Health', what: 'whether the process is alive', isProbe: true },
  { path: '/readyz', name: 'Readiness', what: 'whether the database can be reached', isProbe: true },
];

const summary = 'A GraphQL gateway over trainer devices, training programs and lock sessions.';

export interface HomeOptions {
  /** The token of the demo account, if there is one and the client may see it. */
  readonly demoToken: string | undefined;
  /** Whether there is a page at a path, since settings may switch it off. */
  readonly isThere: (path: string) => boolean;
  /** Whether the database is on a server, and not embedded. */
  readonly onServer: boolean;
  /** Whether clients may use the tokens that they have for the upstream. */
  readonly takesUpstreamTokens: boolean;
}

/** The page as HTML for browsers, and as text for terminals. */
export function homePage(exchange: Exchange, options: HomeOptions): HttpResponse {
  const { demoToken, isThere } = options;
  const available = allLinks.filter(({ path }) => isThere(path));
  // The Host header of the client goes into the response, so only characters of a host are allowed.
  const { host = '' } = exchange.request.headers;
  const address = /^[\w.:[\]-]+$/.test(host) ? host : 'localhost:4000';
  const content: Content = { available, address, demoToken, howTo: howToGetToken(options) };
  return asksForPage(exchange) ? asPage(content) : asText(content);
}

const question = '{ viewer { username } }';
const unknownToken = 'YOUR_API_TOKEN';

/** How to get a token. The command does not name the database: readers of the page need not know where it is. */
function howToGetToken({ onServer, takesUpstreamTokens }: HomeOptions): HowTo {
  const use = takesUpstreamTokens ? 'Use the token that you have for the service behind this gateway. ' : '';
  const command = 'npx dovetail token create --user NAME --name first';
  return onServer
    ? {
        use,
        command: `DATABASE_URL=postgresql://user:password@host:5432/database ${command}`,
        where: 'with the DATABASE_URL of the gateway',
      }
    : { use, command, where: 'where the gateway was started, with its DATA_DIR if it has one' };
}

/** How to get a token. */
interface HowTo {
  /** Which token a client may have already, if any will do. */
  readonly use: string;
  readonly command: string;
  readonly where: string;
}

/** The content of the page, for either form. */
interface Content {
  readonly available: readonly Link[];
  readonly address: string;
  readonly demoToken: string | undefined;
  readonly howTo: HowTo;
}

/** A request to each API, as a shell command. */
function commandsFor(address: string, token: string): string[] {
  const authorization = `-H 'Authorization: Bearer ${token}'`;
  const body = JSON.stringify({ query: question });
  return [
    [`curl ${address}/graphql`, authorization, "-H 'Content-Type: application/json'", `-d '${body}'`],
    [`curl ${address}/api/v1/dtt/templates/active`, authorization],
  ].map((parts) => parts.join(' \\\n  '));
}

/** The same request from a web page. */
const snippetFor = (address: string, token: string) => `<script type="module">
  const response = await fetch('http://${address}/graphql', {
    method: 'POST',
    headers: {
      Authorization: 'Bearer ${token}',
      'Content-Type': 'application/json',
    },
    body: JSON.stringify({ query: '${question}' }),
  });
  const { data, errors } = await response.json();
  document.body.append(errors ? errors[0].message : data.viewer.username);
</script>`;

/** The request headers that the response depends on. */
const headers = { Vary: 'Accept, Authorization, Host' };

function asText({ available, address, demoToken, howTo }: Content): HttpResponse {
  const list = available.map(({ path, what }) => `  ${path.padEnd(16)} ${what}`);
  const token = [`${howTo.use}A token for a user, ${howTo.where}:`, `  ${howTo.command}`, ''];
  const commands = commandsFor(address, demoToken ?? unknownToken);
  const lines = [`Dovetail ${release}`, summary, '', ...list, '', ...token, ...commands];
  return textResponse(200, lines.join('\n'), { ...headers, 'Cache-Control': 'private, no-cache' });
}

function asPage({ available, address, demoToken, howTo }: Content): HttpResponse {
  const token = demoToken ?? unknownToken;
  const items = available
    .filter(({ isProbe }) => !isProbe)
    .map(({ path, name, what }) => `<li><a href="${path}">${name}</a> <span>${what}</span></li>`);
  const probes = available
    .filter(({ isProbe }) => isProbe)
    .map(({ path, name, what }) => `<a href="${path}" title="${what}">${name}</a>`);
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
${items.join('\n')}
</ul></nav>
${tokenSection(demoToken, howTo)}
<h2>From a terminal</h2>
${commandsFor(address, token).map(copyable).join('\n')}
<h2>From a page of yours</h2>
<p>Start the gateway with the origin of your page: <code>CORS_ORIGINS=http://localhost:5173 npm start</code></p>
${copyable(snippetFor(address, token))}
</main>
<footer>Dovetail ${release} · ${probes.join(' · ')}</footer>
<script type="module">${script}</script>
</body>
</html>`;
  const sourceOf = (text: string) => `'sha256-${hash('sha256', text, 'base64')}'`;
  const policy = {
    'style-src': sourceOf(style),
    'script-src': sourceOf(script),
    'connect-src': "'self'",
    'img-src': 'data:',
  };
  return pageResponse(html, policy, headers);
}

function tokenSection(demoToken: string | undefined, { use, command, where }: HowTo): string {
  const own = `<p>Every request needs one. ${use}For a user of this database, ${where}:</p>\n${copyable(command)}`;
  return demoToken === undefined
    ? `<h2>A token</h2>\n${own}`
    : `<h2>The token of the demo account</h2>\n${copyable(demoToken)}\n<p id="account" data-token="${demoToken}"></p>
<h2>A token of your own</h2>\n${own}`;
}

const escapes = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
]);

/** Code with a button that copies it. */
const copyable = (code: string) =>
  `<div class="code"><pre tabindex="0"><code>${code.replace(/[&<]/g, (sign) => escapes.get(sign) ?? sign)}</code></pre><button hidden>Copy</button></div>`;

/** Makes the buttons copy, and shows what the demo account has. The page is complete without it. */
const script = `
for (const button of navigator.clipboard ? document.querySelectorAll('.code button') : []) {
  button.hidden = false;
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(button.previousElementSibling.textContent);
    button.textContent = 'Copied';
    setTimeout(() => { button.textContent = 'Copy' }, 2000);
  });
}
const account = document.getElementById('account');
if (account) {
  const query = '{ viewer { username dttDevices(first: 1) { totalCount } lkbxDevices(first: 1) { totalCount } ossmDevices(first: 1) { totalCount } dttSessions(first: 1) { totalCount } lockSessions(first: 1) { totalCount } } }';
  const response = await fetch('/graphql', {
    method: 'POST',
    headers: { Authorization: 'Bearer ' + account.dataset.token, 'Content-Type': 'application/json' },
    body: JSON.stringify({ query }),
  });
  const { data } = await response.json();
  if (data?.viewer) {
    const { username, dttDevices, lkbxDevices, ossmDevices, dttSessions, lockSessions } = data.viewer;
    const devices = dttDevices.totalCount + lkbxDevices.totalCount + ossmDevices.totalCount;
    account.textContent = username + ': ' + devices + ' devices, ' + dttSessions.totalCount + ' training sessions, ' + lockSessions.totalCount + ' lock sessions';
  }
}
`;

const style = `
body { font: 1rem/1.6 system-ui, sans-serif; margin: 0; background: Canvas; color: CanvasText }
main, footer { max-width: 42rem; margin: 0 auto; padding: 3rem 1.5rem }
h1 { margin: 0 }
h2 { margin: 2rem 0 0; font-size: 1.1rem }
ul { list-style: none; margin: 2rem 0 0; padding: 0 }
li { padding: .5rem 0; border-top: 1px solid color-mix(in srgb, CanvasText 15%, Canvas) }
a { color: LinkText; font-weight: 600 }
code { overflow-wrap: anywhere }
li span { display: block }
.code { position: relative; margin: 1rem 0 }
pre { margin: 0; padding: 1rem 5rem 1rem 1rem; white-space: pre-wrap; overflow-wrap: anywhere; border-radius: .4rem; background: color-mix(in srgb, CanvasText 7%, Canvas) }
button { position: absolute; top: .5rem; right: .5rem; font: inherit; font-size: .85rem }
footer { padding-top: 0; font-size: .9rem }
`;
