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
import { type PageHandler, pageResponse } from './page.ts';
import { staticResponse } from './staticResponse.ts';

/** The path of the OpenAPI document. */
const documentPath = '/openapi.json';

/**
 * Serves the document, the page, and the files of the page.
 * @param demoTokenFor gives the token that is filled in on the page.
 */
export function createDocs(demoTokenFor: DemoTokenFor): PageHandler {
  return async (exchange) => {
    const { request, path } = exchange;
    const file = files.get(path);
    if (!file && path !== '/docs') return textResponse(404, 'Not found. Try /docs.');
    if (file) return file(exchange);
    return revalidated(pageResponse(pageWith(demoTokenFor(request)), ownSources), 'Accept-Encoding, Host');
  };
}

/** The page may load from this server, and images from `data:` URLs. */
const ownSources = {
  'script-src': "'self'",
  'style-src': "'self'",
  'img-src': "'self' data:",
  'font-src': "'self'",
  'connect-src': "'self'",
};

const { resolve } = createRequire(import.meta.url);

/** The files, by path. */
const files: ReadonlyMap<string, PageHandler> = new Map(
  Object.entries({
    [documentPath]: textFile('application/json', printDocument),
    '/docs/start.js': textFile('text/javascript', async () => startScript),
    '/docs/page.css': textFile('text/css', async () => pageStyle),
    '/docs/swagger-ui-bundle.js': textFile('text/javascript', () => readPackaged('swagger-ui-bundle.js')),
    '/docs/swagger-ui.css': textFile('text/css', () => readPackaged('swagger-ui.css')),
  }),
);

function textFile(type: string, read: () => Promise<string>): PageHandler {
  return staticResponse(async () => {
    const body = Buffer.from(await read());
    const headers = { 'Content-Type': `${type}; charset=utf-8`, 'Content-Length': body.length };
    return { status: 200, headers, body };
  });
}

const readPackaged = (name: string) => readFile(resolve(`swagger-ui-dist/${name}`), 'utf8');

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
  <link rel="stylesheet" href="/docs/page.css">
</head>
<body>
  <p>${demoToken ? 'The token of the demo account is filled in: every request can be tried as it is.' : 'To try requests, put your token in by the button Authorize.'}</p>
  <noscript><p>The form for each route needs JavaScript. <a href="${documentPath}">The OpenAPI document</a> has the same text.</p></noscript>
  <div id="reference" data-token="${demoToken}"></div>
  <script src="/docs/swagger-ui-bundle.js"></script>
  <script src="/docs/start.js"></script>
</body>
</html>
`;

const pageStyle = `body { margin: 0 }
body > p, noscript > p { margin: 0; padding: .75rem 1.25rem; font: 1rem/1.5 system-ui, sans-serif; text-align: center }
`;

/** Swagger UI's dark theme is a class of the root element. `validatorUrl: null` keeps it from using a validator on another server. */
const startScript = `const dark = matchMedia('(prefers-color-scheme: dark)');
const applyTheme = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', applyTheme);
applyTheme();
const domNode = document.getElementById('reference');
const ui = SwaggerUIBundle({
  domNode,
  url: '${documentPath}',
  validatorUrl: null,
  deepLinking: true,
  displayRequestDuration: true,
  tryItOutEnabled: true,
  onComplete: () => {
    if (domNode.dataset.token) ui.preauthorizeApiKey('token', domNode.dataset.token);
  },
});
`;
