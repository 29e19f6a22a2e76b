/** A tool for each operation of the REST API, which returns the data of its route. */

import type { SchemaObject } from 'openapi3-ts/oas31';
import { messages } from '../errors.ts';
import { restPath } from '../http/exchange.ts';
import { isRecord, parseJson } from '../http/json.ts';
import { describeSelection, exactly } from '../rest/jsonSchema.ts';
import { idParameter, parameters } from '../rest/openapi.ts';
import { nameOf, type Route, routes } from '../rest/routes.ts';
import { pageErrors } from '../schema/loading/pagination.ts';
import { schema } from '../schema/schema.ts';
import { type Arguments, objectSchema, problemWith, reads, type Tool } from './tool.ts';

/** An operation may have several routes. Its tool is made of the first. */
export const restTools: readonly Tool[] = routes
  .filter((route, index) => routes.findIndex(({ operation }) => operation === route.operation) === index)
  .map(toolOf);

function toolOf(route: Route): Tool {
  const components: Record<string, SchemaObject> = route.isList
    ? { Pagination: exactly({ limit: { type: 'integer' }, offset: { type: 'integer' } }) }
    : {};
  const { data: output } = describeSelection(route, schema, components);
  const hasId = route.path.endsWith('/{id}');
  const inputs = [
    ...(hasId ? [idParameter] : []),
    ...(route.isList ? [parameters.Limit, parameters.Offset] : []),
  ].map(({ name, schema: type, description }) => [name, { ...type, description }]);
  const inputSchema = objectSchema(Object.fromEntries(inputs), { required: hasId ? ['id'] : [] });
  const name = nameOf(route);
  return {
    name: `${name.charAt(0).toLowerCase()}${name.slice(1)}`,
    description: descriptionOf(route),
    inputSchema,
    outputSchema: objectSchema({ data: output }, { parts: components }),
    annotations: route.isMutation
      ? { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false }
      : reads,
    requestFor: (given) =>
      problemWith(given, inputSchema) ??
      problemWithIntegers(route, given) ?? {
        method: route.method,
        target: targetOf(route, given),
        content: route.body?.values,
      },
    resultOf({ status, body }) {
      const { data, error = messages.upstreamUnreadable } = contentOf(body);
      return status === 200 && data !== undefined
        ? { content: { data }, error: undefined }
        : { content: undefined, error: String(error) };
    },
  };
}

function descriptionOf({ description, missing }: Route): string {
  return missing === undefined ? description : `${description} Fails with "${missing}" if there is none.`;
}

/**
 * The route's error message for an argument that is no integer: written into the URL, some values would lead to another route.
 * Integers that are out of bounds are left to the route.
 */
function problemWithIntegers({ path, isMutation, missing }: Route, { id, limit, offset }: Arguments) {
  if (path.endsWith('/{id}') && !(Number.isInteger(id) && Number(id) >= 0))
    return isMutation ? (missing ?? messages.notFound) : messages.invalidId;
  if (limit != null && !Number.isInteger(limit)) return pageErrors.size('limit');
  if (offset != null && !Number.isInteger(offset)) return pageErrors.offset;
  return undefined;
}

/** The envelope of a response. A response that was forwarded from an upstream may have none. */
function contentOf(body: Buffer): { readonly data?: unknown; readonly error?: unknown } {
  const content = parseJson(body.toString());
  return isRecord(content) ? content : {};
}

/** The target of the request, with the arguments in the path and the query. */
function targetOf({ path }: Route, { id, ...others }: Arguments): string {
  const query = Object.entries(others)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => `${name}=${value}`)
    .join('&');
  const target = `${restPath}${path.replace('{id}', () => String(id))}`;
  return query === '' ? target : `${target}?${query}`;
}
