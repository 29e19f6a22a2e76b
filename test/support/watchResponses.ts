/** Records all responses of a gateway below `/api/v1`. */

import type { Server } from 'node:http';
import { decoded } from './decoded.ts';

export interface SentResponse {
  readonly method: string;
  /** Below `/api/v1`. */
  readonly target: string;
  readonly status: number;
  /** With their names in lower case. */
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

/** @returns the responses so far. Equal ones are stored once, since some tests send the same request many times. */
export function watchResponses(server: Server): ReadonlyMap<string, SentResponse> {
  const responses = new Map<string, SentResponse>();
  server.prependListener('request', (request, response) => {
    const { method = '', url = '' } = request;
    const [, target] = /^\/api\/v1((?:[/?].*)?)$/s.exec(url) ?? [];
    // Responses to OPTIONS belong to CORS, which the OpenAPI document does not describe.
    if (target === undefined || method === 'OPTIONS') return;
    const { writeHead, end } = response;
    let headers: Readonly<Record<string, unknown>> = {};
    Object.assign(response, {
      /** @param given names and values in turn. */
      writeHead(status: number, given: readonly unknown[]) {
        headers = Object.fromEntries(
          given.flatMap((name, index) =>
            index % 2 === 0 ? [[String(name).toLowerCase(), given[index + 1]]] : [],
          ),
        );
        return Reflect.apply(writeHead, response, [status, given]);
      },
      end(...given: [body?: Buffer | string, encoding?: BufferEncoding]) {
        const { statusCode: status } = response;
        const [sent = '', encoding] = given;
        const bytes = typeof sent === 'string' ? Buffer.from(sent, encoding) : sent;
        const body = String(decoded(bytes, headers['content-encoding']));
        const [path] = target.split('?', 1);
        responses.set([method, path, status, body].join(' '), { method, target, status, headers, body });
        return Reflect.apply(end, response, given);
      },
    });
  });
  return responses;
}
