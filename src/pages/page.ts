/**
 * Pages for browsers: HTML that may load and run only what its policy names, and static responses. A static response is created
 * with the first request, and stored in each encoding that a client asks for.
 */

import { hash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { extname } from 'node:path';
import type { Exchange } from '../http/exchange.ts';
import { type HttpResponse, revalidated, textResponse } from '../http/response.ts';
import { root } from '../root.ts';

/** Handles the requests to a page: a path that belongs to neither API. */
export type PageHandler = (exchange: Exchange) => HttpResponse | Promise<HttpResponse>;

/** The token that may stand in a page that the request gets; undefined for any other request. */
export type TokenFor = (request: IncomingMessage) => string | undefined;

/** The directives of a page's Content-Security-Policy. Everything that it does not name is forbidden. */
export type Policy = Readonly<Record<string, string>>;

/** The policy of a page that loads its own files, and connects to this gateway alone. */
export const ownFiles: Policy = {
  'script-src': "'self'",
  'style-src': "'self'",
  'img-src': "'self' data:",
  'connect-src': "'self'",
};

const theme = readFileSync(new URL('src/pages/theme.js', root), 'utf8').replace(/^ *\/\/.*\n/gm, '');
const themeDigest = `'sha256-${hash('sha256', theme, 'base64')}'`;

/**
 * Creates the response with a page, which gets the script of the theme. No other site may frame it, and its links send no `Referer`. It may
 * have the token of the demo account: no other site can read it, and no shared cache may store it.
 * @param html begins with a head whose first element is `<meta charset="utf-8">`.
 */
export function pageResponse(
  html: string,
  policy: Policy,
  headers: Readonly<Record<string, string>> = {},
): HttpResponse {
  // `default-src` does not cover the directives after it.
  const rules = {
    'default-src': "'none'",
    'base-uri': "'none'",
    'form-action': "'none'",
    'frame-ancestors': "'self'",
    ...policy,
    'script-src': [policy['script-src'], themeDigest].filter(Boolean).join(' '),
  };
  const themed = html.replace('<meta charset="utf-8">', `$&\n<script>${theme}</script>`);
  return textResponse(200, themed, {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': Object.entries(rules)
      .map((rule) => rule.join(' '))
      .join('; '),
    'Cache-Control': 'private, no-cache',
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'SAMEORIGIN',
    ...headers,
  });
}

/**
 * Creates a handler that always returns the same response.
 * @param vary the request headers that the response depends on.
 * @param others response headers to add or replace.
 */
export function staticResponse(
  create: () => Promise<HttpResponse>,
  vary = 'Accept-Encoding',
  others: Readonly<Record<string, string>> = {},
): PageHandler {
  let stored: Promise<HttpResponse> | undefined;
  return () => {
    stored ??= create().then((created) => {
      const response = revalidated(created, vary, others);
      return { ...response, forms: { plain: response } };
    });
    // After a failure the next request tries again.
    stored.catch(() => {
      stored = undefined;
    });
    return stored;
  };
}

/** Creates a page that may have a token in it. It is made once for each token. @param vary as for `staticResponse`. */
export function pageByToken(
  tokenFor: TokenFor,
  vary: string,
  create: (token: string | undefined) => Promise<HttpResponse>,
): PageHandler {
  const pages = new Map<string | undefined, PageHandler>();
  return (exchange) => {
    const token = tokenFor(exchange.request);
    const page = pages.get(token) ?? staticResponse(() => create(token), vary);
    pages.set(token, page);
    return page(exchange);
  };
}

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.webp': 'image/webp',
};

/** Creates a handler that serves a file. The ending of its name gives its type. */
export function staticFile(
  name: string,
  read: () => Promise<string | Buffer>,
  headers?: Readonly<Record<string, string>>,
): PageHandler {
  const create = async () => {
    const body = Buffer.from(await read());
    const type = types[extname(name)] ?? 'application/octet-stream';
    return { status: 200, headers: { 'Content-Type': type, 'Content-Length': body.length }, body };
  };
  return staticResponse(create, 'Accept-Encoding', headers);
}

/** The page of a bundle: a folder of `dist`, which the build makes. Its links are relative to that folder: each begins with `./`. */
export const bundledPage = (name: string): Promise<string> =>
  readFile(new URL(`dist/${name}/index.html`, root), 'utf8');

/** The name of a file has a digest of its content, so the content never changes. */
const immutable = { 'Cache-Control': 'public, max-age=31536000, immutable' };

/** Serves the files of a bundle. @param base the path of its folder. @param page where its page is. */
export function bundledFiles(name: string, base: string, page: string): PageHandler {
  const folder = new URL(`dist/${name}/assets/`, root);
  const files = new Map(
    readdirSync(folder).map((file) => [
      `${base}/assets/${file}`,
      staticFile(file, () => readFile(new URL(file, folder)), immutable),
    ]),
  );
  return (exchange) => files.get(exchange.path)?.(exchange) ?? textResponse(404, `Not found. Try ${page}.`);
}
