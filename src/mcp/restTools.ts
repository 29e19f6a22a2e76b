/** A tool for each operation of the REST interface, which gives what its route gives. */

import type { SchemaObject } from 'openapi3-ts/oas31';
import { restPath } from '../http/exchange.ts';
import { describeSelection, exactly } from '../rest/jsonSchema.ts';
import { idParameter, parameters } from '../rest/openapi.ts';
import { nameOf, type Route, routes } from '../rest/routes.ts';
import { schema } from '../schema/schema.ts';
import { type Arguments, objectSchema, problemWith, reads, type Tool } from './tool.ts';

/** An operation may have several routes, of which the first stands for all. */
export const restTools: readonly Tool[] = routes
  .filter((route, index) => routes.findIndex(({ operation }) => operation === route.operation) === index)
  .map(toolOf);

function toolOf(route: Route): Tool {
  const components: Record<string, SchemaObject> = {
    Pagination: exactly({ limit: { type: 'integer' }, offset: { type: 'integer' } }),
  };
  const selection = describeSelection(route, schema, components);
  const hasId = route.path.endsWith('/{id}');
  const inputs = [
    ...(hasId ? [idParameter(selection)] : []),
    ...(route.isList ? [parameters.Limit, parameters.Offset] : []),
  ].map(({ name, schema: type, description }) => [name, { ...type, ...(description && { description }) }]);
  const inputSchema = objectSchema(Object.fromEntries(inputs), { required: hasId ? ['id'] : [] });
  const name = nameOf(route);
  return {
    name: `${name.charAt(0).toLowerCase()}${name.slice(1)}`,
    description: descriptionOf(route),
    inputSchema,
    outputSchema: objectSchema({ data: selection.data }, { parts: used(components, selection.data) }),
    annotations: route.isMutation
      ? { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false }
      : reads,
    requestFor: (given) =>
      problemWith(given, inputSchema) ?? {
        method: route.method,
        target: targetOf(route, given),
        body: route.body && Buffer.from(JSON.stringify(route.body.values)),
      },
    resultOf({ status, body }) {
      const { data, error } = JSON.parse(body.toString());
      return status === 200
        ? { content: { data }, error: undefined }
        : { content: undefined, error: String(error) };
    },
  };
}

function descriptionOf({ description, deprecation, missing }: Route): string {
  const parts = [
    description,
    missing !== undefined && `Fails with "${missing}" if there is none.`,
    deprecation && `Deprecated since ${deprecation.deprecated}.`,
  ];
  return parts.filter((part) => part).join(' ');
}

/** The components that a schema leads to. */
function used(
  components: Readonly<Record<string, SchemaObject>>,
  start: object,
): Record<string, SchemaObject> {
  const found: Record<string, SchemaObject> = {};
  const visit = (part: object) => {
    for (const [, name = ''] of JSON.stringify(part).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      const component = components[name];
      if (!component || found[name]) continue;
      found[name] = component;
      visit(component);
    }
  };
  visit(start);
  return found;
}

/** The values as they are written into a URL: it is the route that says what is wrong with them. */
function targetOf({ path }: Route, { id, ...others }: Arguments): string {
  const query = Object.entries(others)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => `${name}=${encodeURIComponent(textOf(value))}`)
    .join('&');
  const target = `${restPath}${path.replace('{id}', encodeURIComponent(textOf(id)))}`;
  return query === '' ? target : `${target}?${query}`;
}

const textOf = (value: unknown): string =>
  typeof value === 'object' ? JSON.stringify(value) : String(value);
