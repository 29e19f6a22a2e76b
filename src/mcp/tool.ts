/** A tool is a request of the REST or GraphQL API, described for language models. */

import type { JSONObject } from '@modelcontextprotocol/server';
import type { SchemaObject } from 'openapi3-ts/oas31';
import type { InnerRequest } from '../http/exchange.ts';
import type { HttpResponse } from '../http/response.ts';

export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: ObjectSchema;
  /** Undefined for a tool whose results have different shapes. */
  readonly outputSchema?: ObjectSchema;
  readonly annotations: Annotations;
  /** The request for a call with these arguments, or a message that says what is wrong with them. */
  requestFor(given: Arguments): InnerRequest | string;
  /** Makes the result of the call from the response to that request. */
  resultOf(response: HttpResponse): Result;
}

export type Arguments = Readonly<Record<string, unknown>>;

/**
 * Hints for assistants that decide about calls. Tools reach nothing outside this service, so `openWorldHint` is
 * false.
 */
export interface Annotations {
  readonly readOnlyHint: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
  readonly openWorldHint: false;
}

export interface Result {
  /** The data; after errors of single fields, the data of the other fields. */
  readonly content: Readonly<Record<string, unknown>> | undefined;
  /** The error message, if there is an error. */
  readonly error: string | undefined;
}

/** The JSON Schema of an object. `$defs` has the schemas to which it refers. */
export interface ObjectSchema {
  type: 'object';
  properties: Record<string, JSONObject>;
  required: string[];
  additionalProperties: boolean;
  $defs?: Record<string, JSONObject>;
}

export const reads: Annotations = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
};

/**
 * The JSON Schema of an object that has these properties and no others.
 * @param required the names of the required properties; by default all.
 * @param parts the schemas to which the properties refer.
 */
export function objectSchema(
  properties: Readonly<Record<string, object>>,
  {
    required = Object.keys(properties),
    parts = {},
  }: { readonly required?: readonly string[]; readonly parts?: Readonly<Record<string, SchemaObject>> } = {},
): ObjectSchema {
  const schema = {
    properties,
    ...(Object.keys(parts).length > 0 && { $defs: parts }),
  };
  // References point into this schema, instead of into an OpenAPI document.
  const own = JSON.parse(JSON.stringify(schema).replaceAll('"#/components/schemas/', '"#/$defs/'));
  return { type: 'object', ...own, required: [...required], additionalProperties: false };
}

/**
 * A message about the first argument that the tool does not have, or about one that is missing; undefined if there is
 * none.
 */
export function problemWith(given: Arguments, { properties, required }: ObjectSchema): string | undefined {
  const names = Object.keys(properties);
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(properties, name));
  if (unknown !== undefined) {
    const takes = names.length === 0 ? 'none' : names.join(', ');
    return `${JSON.stringify(unknown.slice(0, 100))} is no argument of this tool, which takes ${takes}`;
  }
  const missing = required.find((name) => given[name] === undefined);
  return missing === undefined ? undefined : `The argument ${missing} is missing`;
}
