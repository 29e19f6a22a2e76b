/** Responses that are always the same. They are created with the first request, and stored in each form that is asked for. */

import { extname } from 'node:path';
import { type HttpResponse, revalidated } from '../http/response.ts';
import type { PageHandler } from './page.ts';

/**
 * Creates a handler that always gives the same response.
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

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Creates a handler that gives a file, whose name says its type. */
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
