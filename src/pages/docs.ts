/** The reference of the REST interface: its OpenAPI document, and Swagger UI to read it and to try it. */

import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { revalidated, textResponse } from '../http/response.ts';
import { describeRest } from '../rest/openapi.ts';
import { routes } from '../rest/routes.ts';
import { schema } from '../schema/schema.ts';
import { release } from '../version.ts';
import type { DemoTokenFor } from './demoToken.ts';
import { type PageHandler, pageResponse } from './page.ts';
import { staticResponse } from './staticResponse.ts';

/** The path of the document. */
const documentPath = '/openapi.json';

/**
 * The document, the page, and what the page loads.
 * @param demoTokenFor gives the token that the page starts with.
 */
export function createDocs(demoTokenFor: DemoTokenFor): PageHandler {
  return async (exchange) => {
    const { request, path } = exchange;
    const large = files.get(path);
    if (!large && path !== '/docs') return textResponse(404, 'Nothing is here. Try /docs.');
    if (large) return large(exchange);
    return revalidated(pageResponse(pageWith(demoTokenFor(request)), ownSources), 'Accept-Encoding, Host');
  };
}

/** What the page loads: what this server has, and pictures that are written out in it. */
const ownSources = {
  'script-src': "'self'",
  'style-src': "'self'",
  'img-src': "'self' data:",
  'font-src': "'self'",
  'connect-src': "'self'",
};

const { resolve } = createRequire(import.meta.url);

/** Responses that are large and always the same, by path. */
const files: ReadonlyMap<string, PageHandler> = new Map(
  Object.entries({
    [documentPath]: file('application/json', printDocument),
    '/docs/start.js': file('text/javascript', async () => startScript),
    '/docs/page.css': file('text/css', async () => pageStyle),
    '/docs/swagger-ui-bundle.js': file('text/javascript', () => readPackaged('swagger-ui-bundle.js')),
    '/docs/swagger-ui.css': file('text/css', () => readPackaged('swagger-ui.css')),
  }),
);

function file(type: string, read: () => Promise<string>): PageHandler {
  return staticResponse(async () => {
    const body = Buffer.from(await read());
    const headers = { 'Content-Type': `${type}; charset=utf-8`, 'Content-Length': body.length };
    return { status: 200, headers, body };
  });
}

const readPackaged = (name: string) => readFile(resolve(`swagger-ui-dist/${name}`), 'utf8');

async function printDocument(): Promise<string> {
  const examples = JSON.parse(await readFile(new URL('../rest/examples.json', import.meta.url), 'utf8'));
  return JSON.stringify(describeRest({ routes, schema, version: release, examples }));
}

/** A token is letters, digits, `-` and `_`. It stands in the page, which only the page itself can read. */
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
  <div id="reference" data-token="${demoToken}"></div>
  <script src="/docs/swagger-ui-bundle.js"></script>
  <script src="/docs/start.js"></script>
</body>
</html>
`;

const pageStyle = `body { margin: 0 }
body > p { margin: 0; padding: .75rem 1.25rem; font: 1rem/1.5 system-ui, sans-serif; text-align: center }
`;

/** Swagger UI's dark theme is a class of the root. Without a validator's address it asks nobody but this server. */
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
