/** The reference of the REST interface: its OpenAPI document, and Swagger UI to read and try it. */

import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { revalidated, textResponse } from '../http/response.ts';
import { describeRest } from '../rest/openapi.ts';
import { routes } from '../rest/routes.ts';
import { root } from '../root.ts';
import { schema } from '../schema/schema.ts';
import { release } from '../version.ts';
import type { DemoTokenFor } from './demoToken.ts';
import { ownFiles, type PageHandler, pageResponse, staticFile } from './page.ts';

const { resolve } = createRequire(import.meta.url);

/** Reads a file of Swagger UI. */
const readPackaged = (name: string) => readFile(resolve(`swagger-ui-dist/${name}`), 'utf8');

/** The files of the page, and the document, by path. */
const files: ReadonlyMap<string, PageHandler> = new Map([
  ['/openapi.json', staticFile('openapi.json', printDocument)],
  ['/docs/start.js', staticFile('start.js', async () => startScript)],
  ...['swagger-ui-bundle.js', 'swagger-ui.css'].map(
    (name) => [`/docs/${name}`, staticFile(name, () => readPackaged(name))] as const,
  ),
]);

/** @param demoTokenFor gives the token that is filled in on the page. */
export function createDocs(demoTokenFor: DemoTokenFor): PageHandler {
  return (exchange) => {
    const { request, path } = exchange;
    if (path === '/docs') return revalidated(pageResponse(pageWith(demoTokenFor(request)), ownFiles), 'Host');
    return files.get(path)?.(exchange) ?? textResponse(404, 'Not found. Try /docs.');
  };
}

async function printDocument(): Promise<string> {
  const examples = JSON.parse(await readFile(new URL('src/rest/examples.json', root), 'utf8'));
  return JSON.stringify(describeRest({ routes, schema, version: release, examples }));
}

/** @param demoToken consists of letters, digits, `-` and `_`, so it needs no escaping. No other site can read the page. */
const pageWith = (demoToken = '') => `<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title>Dovetail REST reference</title>
  <link rel="icon" href="data:,">
  <meta name="color-scheme" content="light dark">
  <link rel="stylesheet" href="/docs/swagger-ui.css">
</head>
<body>
  <div class="swagger-ui"><p class="wrapper">${demoToken ? 'The token of the demo account is filled in: every request can be tried as it is.' : 'To try requests, put your token in by the button Authorize.'}</p></div>
  <noscript><p>The form for each route needs JavaScript. <a href="/openapi.json">The OpenAPI document</a> has the same text.</p></noscript>
  <div id="reference" data-token="${demoToken}"></div>
  <script src="/docs/swagger-ui-bundle.js"></script>
  <script src="/docs/start.js"></script>
</body>
</html>
`;

/** Swagger UI's dark theme is a class of the root element. `validatorUrl: null` keeps it from using a validator on another server. */
const startScript = `const dark = matchMedia('(prefers-color-scheme: dark)');
const applyTheme = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', applyTheme);
applyTheme();
const domNode = document.getElementById('reference');
const ui = SwaggerUIBundle({
  domNode,
  url: '/openapi.json',
  validatorUrl: null,
  deepLinking: true,
  displayRequestDuration: true,
  tryItOutEnabled: true,
  onComplete: () => {
    if (domNode.dataset.token) ui.preauthorizeApiKey('token', domNode.dataset.token);
  },
});
`;
