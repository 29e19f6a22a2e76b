/** What a tool is: a request of one of the APIs, in the form in which language models are told of it. */

import type { JSONObject } from '@modelcontextprotocol/server';
import type { SchemaObject } from 'openapi3-ts/oas31';
import type { InnerRequest } from '../http/exchange.ts';
import type { HttpResponse } from '../http/response.ts';

export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: ObjectSchema;
  /** Undefined for one whose result has no one shape. */
  readonly outputSchema?: ObjectSchema;
  readonly annotations: Annotations;
  /** The request that a call with these arguments is, or what is wrong with them. */
  requestFor(given: Arguments): InnerRequest | string;
  /** Makes a result of its response. */
  resultOf(response: HttpResponse): Result;
}

export type Arguments = Readonly<Record<string, unknown>>;

/** Hints for whoever decides about calls. What a tool reads or writes is here, so none reaches out into the world. */
export interface Annotations {
  readonly readOnlyHint: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
  readonly openWorldHint: false;
}

export interface Result {
  /** The data of a success, or as much as there is of it. */
  readonly content: Readonly<Record<string, unknown>> | undefined;
  /** What is wrong, if anything is. */
  readonly error: string | undefined;
}

/** The schema of an object, whose parts it may have by their names. */
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
 * An object with these properties and no other, and the parts that they refer to.
 * @param required all of them, unless told otherwise.
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
  // The parts stand in the schema itself, and in no document around it.
  const own = JSON.parse(JSON.stringify(schema).replaceAll('"#/components/schemas/', '"#/$defs/'));
  return { type: 'object', ...own, required: [...required], additionalProperties: false };
}

/** What is wrong with the names of the arguments: a tool passes none over, and has all that it needs. */
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
