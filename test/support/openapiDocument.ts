/** Checks responses of the REST API against its OpenAPI document. */

import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type {
  HeaderObject,
  OpenAPIObject,
  OperationObject,
  ResponseObject,
  SchemaObject,
} from 'openapi3-ts/oas31';
import type { SentResponse } from './watchResponses.ts';

/** The OpenAPI document that the gateway serves. */
export const shippedDocument: OpenAPIObject = JSON.parse(
  readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'),
);

/** Creates a check of responses. It returns what is wrong with a response, or undefined if it conforms to the document. */
function createConformanceCheck(document: OpenAPIObject): (response: SentResponse) => string | undefined {
  // The document is no JSON schema itself, so some keywords are unknown. An offset may exceed the range of a number.
  const ajv = new Ajv2020({ strict: false, strictNumbers: false });
  ajv.addFormat(
    'date-time',
    (text: string) => !Number.isNaN(Date.parse(text)) && new Date(text).toISOString() === text,
  );
  ajv.addFormat('int32', { type: 'number', validate: (value) => Math.abs(value) <= 2 ** 31 });
  ajv.addSchema(closed(document), 'document');

  return ({ method, target, status, headers, body }) => {
    const path = pathOf(target);
    const place = ['paths', path ?? '', method === 'HEAD' ? 'get' : method.toLowerCase()];
    const operation = at(document, place) as OperationObject | undefined;
    if (!operation) {
      // A browser is redirected to the reference, which is no part of the API.
      if (/^(\?|$)/.test(target) && status === 302 && headers.location === '../docs') return undefined;
      if (![400, 401, 404, 405, 408, 429, 431, 500].includes(status))
        return `${status} to what is not documented`;
      return validate(['components', 'schemas', 'ErrorResponse'], body);
    }
    // The tests of followed routes compare the events with responses.
    if (/^text\/event-stream\b/.test(String(headers['content-type'])))
      return operation['x-event-stream'] && method === 'GET' ? undefined : 'no events are documented';
    const given: unknown = operation.responses?.[status];
    if (!given) return `${status} is not documented`;
    const responsePlace = placeOf(given) ?? [...place, 'responses', String(status)];
    const response = at(document, responsePlace) as ResponseObject;
    for (const [name, header] of Object.entries(response.headers ?? {})) {
      const shared = placeOf(header);
      const described = shared ? at(document, shared) : header;
      const { required, schema: expected = {} } = described as HeaderObject & { schema?: SchemaObject };
      const value = headers[name.toLowerCase()];
      if (required && value === undefined) return `${name} is missing`;
      if (value !== undefined && !ajv.validate(expected, expected.type === 'integer' ? Number(value) : value))
        return `${name} is ${value}`;
    }
    const known = Object.keys(response.headers ?? {}).map((name) => name.toLowerCase());
    const unknown = Object.keys(headers).find((name) => !known.includes(name) && !usualHeaders.test(name));
    if (unknown !== undefined) return `the header ${unknown} is not documented`;
    const content = response.content?.['application/json'];
    if (!content) return body === '' ? undefined : 'a body is not documented';
    if (headers['content-type'] !== 'application/json; charset=utf-8')
      return `${headers['content-type']} is not JSON`;
    const messages = Object.values(content.examples ?? {}).map((example) =>
      JSON.stringify(at(example, ['value'])),
    );
    // The message about another user has the id from the request, and that about subscriptions a setting.
    const sent = body
      .replace(/(?<=Forbidden: user )\d+/, '2')
      .replace(/\d+(?= subscriptions open| are allowed)/g, '50');
    if (messages.length > 0 && !messages.includes(sent)) return `${body} is not documented`;
    return validate([...responsePlace, 'content', 'application/json', 'schema'], body);
  };

  function pathOf(target: string): string | undefined {
    const [path = ''] = target.split('?', 1);
    const withId = path.replace(/[^/]+$/, '{id}');
    return [path, withId].find((each) => at(document, ['paths', each]));
  }

  function validate(place: readonly string[], body: string): string | undefined {
    const pointer = place.map((name) => encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1')));
    const check = ajv.getSchema(`document#/${pointer.join('/')}`);
    if (!check) throw new Error(`there is no schema at ${place.join(' ')}`);
    return check(JSON.parse(body)) ? undefined : ajv.errorsText(check.errors);
  }
}

/** The document with objects that have no other properties. Programs have to pass over those; the gateway sends none. */
const closed = (document: OpenAPIObject): OpenAPIObject =>
  JSON.parse(JSON.stringify(document), (_name, value) =>
    value?.type === 'object' ? { ...value, additionalProperties: false } : value,
  );

/** Headers that HTTP itself explains. */
const usualHeaders =
  /^(access-control-.+|cache-control|connection|content-.+|date|vary|x-content-type-options)$/;

/** The problems of responses by the document of the routes, one line each. */
export function problemsOf(responses: Iterable<SentResponse>): string[] {
  checkShipped ??= createConformanceCheck(shippedDocument);
  const check = checkShipped;
  return [...responses].flatMap((response) => {
    const problem = check(response);
    return problem === undefined ? [] : [`${response.method} ${response.target}: ${problem}`];
  });
}

/** Created once: it compiles the validators that are needed. */
let checkShipped: ReturnType<typeof createConformanceCheck> | undefined;

/** Where a reference leads. */
function placeOf(value: unknown): string[] | undefined {
  const reference = at(value, ['$ref']);
  return typeof reference === 'string' ? reference.split('/').slice(1) : undefined;
}

function at(value: unknown, [name, ...rest]: readonly string[]): unknown {
  if (name === undefined) return value;
  if (typeof value !== 'object' || value === null) return undefined;
  return at((value as Record<string, unknown>)[name], rest);
}
