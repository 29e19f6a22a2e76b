/** The OpenAPI document of the REST interface: what its operations select, in the words of the schema. */

import { STATUS_CODES } from 'node:http';
import {
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLEnumType,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  getNamedType,
  isEnumType,
  isListType,
  isNonNullType,
  isObjectType,
  Kind,
  type SelectionSetNode,
} from 'graphql';
import type {
  HeaderObject,
  OpenAPIObject,
  OperationObject,
  ParameterObject,
  ReferenceObject,
  ResponseObject,
  ResponsesObject,
  SchemaObject,
} from 'openapi3-ts/oas31';
import { messages } from '../errors.ts';
import { restError } from '../http/errorResponse.ts';
import { pageErrors, pageSize } from '../schema/loading/pagination.ts';
import { isSpread, type Route } from './routes.ts';

export interface OpenApiOptions {
  readonly routes: readonly Route[];
  readonly schema: GraphQLSchema;
  readonly version: string;
  /** Data of successful responses, by the names of the operations. */
  readonly examples: Readonly<Record<string, unknown>>;
}

type Schema = SchemaObject | ReferenceObject;
type Properties = Record<string, Schema>;

/** The groups that the interface names, each by the type of its records. Another type is a group of its own. */
const groups: Readonly<Record<string, string>> = {
  User: 'Users',
  DttDevice: 'DTT',
  DttTemplate: 'DTT Templates',
  DttSession: 'DTT Sessions',
  LkbxDevice: 'LKBX',
  LockTemplate: 'Lock Templates',
  LockSession: 'Lock Sessions',
  OssmDevice: 'OSSM',
};

/** What a scalar is in JSON. */
const scalars: Readonly<Record<string, SchemaObject>> = {
  Int: { type: 'integer', format: 'int32' },
  Float: { type: 'number' },
  String: { type: 'string' },
  ID: { type: 'string' },
  Boolean: { type: 'boolean' },
  DateTime: { type: 'string', format: 'date-time' },
};

const introduction = `The older interface to the data that \`/graphql\` serves.

Every response is an envelope: \`{ ok: true, data }\`, or \`{ ok: false, error }\` with a message.
\`HEAD\` works wherever \`GET\` does. Another method on a known path gets a 405 and \`Allow\`,
and an unknown path a 404. What is not well-formed HTTP gets as far as no route, and a 400, 408 or 431
in the same envelope. Parameters that an operation does not know are ignored.`;

const tokenDescription = `An API token of the account whose data is asked for. \`dovetail token create\` makes one.`;

/** Describes the routes. */
export function describeRest({ routes, schema, version, examples }: OpenApiOptions): OpenAPIObject {
  const schemas: Record<string, SchemaObject> = {
    Error: exactly({
      ok: { type: 'boolean', const: false },
      error: { type: 'string', description: 'What is wrong.' },
    }),
    Pagination: exactly({
      limit: { ...limitSchema, description: 'How many records the page has at most.' },
      offset: { ...offsetSchema, description: 'How many records come before the page.' },
    }),
  };
  const tags = new Map<string, string>();
  const paths: NonNullable<OpenAPIObject['paths']> = {};
  const ids = new Set<string>();
  for (const route of routes) {
    const shape = shapeOf(route, schema, schemas);
    const tag = groups[shape.record.name] ?? shape.record.name;
    tags.set(tag, shape.record.description ?? '');
    const id = operationId(route, ids);
    ids.add(id);
    const operation = operationOf(route, shape, examples[nameOf(route)]);
    paths[route.path] = {
      ...paths[route.path],
      [route.method.toLowerCase()]: { operationId: id, tags: [tag], ...operation },
    };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Dovetail',
      version,
      description: introduction,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/api/v1' }],
    security: [{ token: [] }],
    tags: [...tags].map(([name, description]) => ({ name, description })),
    paths,
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer', description: tokenDescription } },
      parameters,
      headers,
      responses: Object.fromEntries(
        Object.entries(sharedFailures).map(([status, response]) => [nameOfStatus(status), response]),
      ),
      schemas,
    },
  };
}

/** What a route selects. */
interface Shape {
  /** The field that becomes the envelope's `data`. */
  readonly node: FieldNode;
  readonly field: GraphQLField<unknown, unknown>;
  /** The type of the records that it is about. */
  readonly record: GraphQLObjectType;
  readonly data: Schema;
}

function shapeOf(route: Route, schema: GraphQLSchema, schemas: Record<string, SchemaObject>): Shape {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of route.document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  }
  const root = schema.getRootType(route.operation.operation);
  const node = route.operation.selectionSet.selections[0];
  const field = node?.kind === Kind.FIELD ? root?.getFields()[node.name.value] : undefined;
  if (node?.kind !== Kind.FIELD || !field) throw new Error(`${nameOf(route)} does not select its data first`);

  // Where null is an error it is no data.
  const selected = route.missing === undefined ? typeOf(field.type, node) : presentOf(field.type, node);
  const data =
    route.isList && 'properties' in selected
      ? exactly({ ...selected.properties, pagination: reference('schemas', 'Pagination') })
      : selected;
  return { node, field, record: recordOf(getNamedType(field.type), node), data };

  /** A list's records, and what a mutation returned, are one step below. */
  function recordOf(type: GraphQLNamedType, of: FieldNode): GraphQLObjectType {
    if (!isObjectType(type)) throw new Error(`${nameOf(route)} does not give a record`);
    const below = of.selectionSet?.selections.find(
      (part) => part.kind === Kind.FIELD && (route.isList || isSpread(part)),
    );
    const inner = below?.kind === Kind.FIELD && getNamedType(type.getFields()[below.name.value]?.type);
    return inner && isObjectType(inner) ? inner : type;
  }

  function typeOf(type: GraphQLOutputType, of: FieldNode): Schema {
    if (isNonNullType(type)) return presentOf(type.ofType, of);
    const present = presentOf(type, of);
    return '$ref' in present
      ? { anyOf: [present, { type: 'null' }] }
      : { ...present, type: [...[present.type ?? []].flat(), 'null'] };
  }

  function presentOf(type: GraphQLOutputType, of: FieldNode): Schema {
    if (isNonNullType(type)) return presentOf(type.ofType, of);
    if (isListType(type)) return { type: 'array', items: typeOf(type.ofType, of) };
    if (isObjectType(type) && of.selectionSet) return objectOf(of.selectionSet, type);
    if (isEnumType(type)) {
      schemas[type.name] ??= enumOf(type);
      return reference('schemas', type.name);
    }
    const scalar = scalars[getNamedType(type).name];
    if (!scalar) throw new Error(`${nameOf(route)} selects ${type}, which has no type in JSON`);
    return scalar;
  }

  /** A selection that is one fragment is named after it. */
  function objectOf(selection: SelectionSetNode, type: GraphQLObjectType): Schema {
    const [first, ...others] = selection.selections;
    const object = { ...exactly(propertiesOf(selection, type)), description: type.description ?? '' };
    if (first?.kind !== Kind.FRAGMENT_SPREAD || others.length > 0) return object;
    const name = first.name.value.replace(/Fields$/, '');
    schemas[name] = object;
    return reference('schemas', name);
  }

  function propertiesOf(selection: SelectionSetNode, type: GraphQLObjectType): Properties {
    const properties: Properties = {};
    for (const part of selection.selections) {
      if (part.kind !== Kind.FIELD) {
        const fragment = part.kind === Kind.INLINE_FRAGMENT ? part : fragments.get(part.name.value);
        const condition = fragment?.typeCondition?.name.value ?? type.name;
        if (!fragment || condition !== type.name)
          throw new Error(`${nameOf(route)} selects what only some of its records have`);
        Object.assign(properties, propertiesOf(fragment.selectionSet, type));
        continue;
      }
      const selectedField = type.getFields()[part.name.value];
      if (!selectedField)
        throw new Error(`${nameOf(route)} selects ${part.name.value}, which is not described`);
      const inner = getNamedType(selectedField.type);
      if (isSpread(part) && part.selectionSet && isObjectType(inner)) {
        Object.assign(properties, propertiesOf(part.selectionSet, inner));
      } else {
        const { description } = selectedField;
        properties[(part.alias ?? part.name).value] = {
          ...typeOf(selectedField.type, part),
          ...(description && { description }),
        };
      }
    }
    return properties;
  }
}

function enumOf(type: GraphQLEnumType): SchemaObject {
  const values = type.getValues();
  const explained = values.map(({ name, description }) => `- \`${name}\`: ${description}`);
  return {
    type: 'string',
    enum: values.map(({ name }) => name),
    description: [type.description, '', ...explained].join('\n'),
  };
}

function operationOf(route: Route, shape: Shape, example: unknown): Omit<OperationObject, 'operationId'> {
  const { deprecation, description } = route;
  const notice = [
    ...(deprecation ? [`Deprecated since ${deprecation.deprecated}.`] : []),
    ...(deprecation?.sunset ? [`May be gone from ${deprecation.sunset} on.`] : []),
    ...(deprecation?.successor ? [`[What takes its place](${deprecation.successor}).`] : []),
    ...(deprecation?.link ? [`[More about it](${deprecation.link}).`] : []),
  ].join(' ');
  return {
    summary: description.split(/[.,:;]/, 1)[0] || nameOf(route),
    description: notice ? `${description}\n\n${notice}` : description,
    ...(deprecation && { deprecated: true }),
    parameters: [
      ...(route.path.includes('{id}') ? [idParameter(shape, example)] : []),
      ...(route.isList ? [reference('parameters', 'Limit'), reference('parameters', 'Offset')] : []),
      ...(route.isMutation ? [] : [reference('parameters', 'IfNoneMatch')]),
    ],
    ...(route.body && {
      requestBody: {
        required: true,
        content: { 'application/json': { schema: including(route.body.values), example: route.body.values } },
      },
    }),
    responses: responsesOf(route, shape, example),
  };
}

function idParameter({ node, field }: Shape, example: unknown): ParameterObject {
  const given = node.arguments?.find(({ value }) => value.kind === Kind.VARIABLE && value.name.value === 'id')
    ?.name.value;
  const { description } = field.args.find(({ name }) => name === given) ?? {};
  const id = typeof example === 'object' && example !== null && 'id' in example ? example.id : undefined;
  return {
    name: 'id',
    in: 'path',
    required: true,
    ...(description && { description }),
    schema: { type: 'integer', minimum: 1 },
    ...(id !== undefined && { example: id }),
  };
}

function responsesOf(route: Route, { data }: Shape, example: unknown): ResponsesObject {
  const deprecation: Record<string, HeaderObject> = {};
  for (const [name, value] of Object.entries(route.deprecation?.headers ?? {}))
    deprecation[name] = { required: true, schema: { type: 'string', const: value } };
  const cached = { ETag: reference('headers', 'ETag'), ...deprecation };
  const failures = Object.entries(failuresOf(route)).filter(([, errors]) => errors.length > 0);
  return {
    200: {
      description: STATUS_CODES[200] ?? '',
      headers: route.isMutation ? deprecation : cached,
      content: {
        'application/json': {
          schema: exactly({ ok: { type: 'boolean', const: true }, data }),
          ...(example !== undefined && { example: { ok: true, data: example } }),
        },
      },
    },
    ...(!route.isMutation && {
      304: { description: 'The response is the one with the tag.', headers: cached },
    }),
    ...Object.fromEntries(
      failures.map(([status, errors]) => [
        status,
        status in sharedFailures ? reference('responses', nameOfStatus(status)) : failure(status, errors),
      ]),
    ),
  };
}

/** What may go wrong on a route: each status with its messages. */
function failuresOf(route: Route): Record<number, readonly string[]> {
  return {
    400: [
      ...(route.body ? [route.body.message] : []),
      ...(route.path.includes('{id}') && !route.isMutation ? [messages.invalidId] : []),
      ...(route.isList ? [pageErrors.size('limit'), pageErrors.offset] : []),
    ],
    401: [messages.unauthorized],
    404: route.missing === undefined ? [] : [route.missing],
    413: route.body ? [messages.bodyTooLarge] : [],
    429: [messages.tooManyRequests],
    500: [messages.internal],
    502: route.isMutation ? [messages.upstreamAway, messages.upstreamUnusable] : [],
    503: [messages.tooBusy],
  };
}

function failure(
  status: number | string,
  errors: readonly string[],
  carried?: NonNullable<ResponseObject['headers']>,
): ResponseObject {
  const examples = errors.map((error) => [error, { value: restError(error) }]);
  return {
    description: STATUS_CODES[status] ?? '',
    ...(carried && { headers: carried }),
    content: {
      'application/json': { schema: reference('schemas', 'Error'), examples: Object.fromEntries(examples) },
    },
  };
}

const limitSchema: SchemaObject = { type: 'integer', minimum: 1, maximum: pageSize.highest };
const offsetSchema: SchemaObject = { type: 'integer', minimum: 0 };

const parameters: Record<string, ParameterObject> = {
  Limit: {
    name: 'limit',
    in: 'query',
    description: 'How many records the page has at most.',
    schema: { ...limitSchema, default: pageSize.default },
  },
  Offset: {
    name: 'offset',
    in: 'query',
    description: 'How many records to skip.',
    schema: { ...offsetSchema, default: 0 },
  },
  IfNoneMatch: {
    name: 'If-None-Match',
    in: 'header',
    description: 'The `ETag` of a response that the client has. If it still holds, the response is a 304.',
    schema: { type: 'string' },
  },
};

const headers: Record<string, HeaderObject> = {
  ETag: { description: 'Stands for these very bytes.', required: true, schema: { type: 'string' } },
  WwwAuthenticate: { required: true, schema: { type: 'string', const: 'Bearer' } },
  RetryAfter: {
    description: 'Seconds to wait before the next request.',
    required: true,
    schema: { type: 'integer', minimum: 0 },
  },
};

/** Failures that are alike on every route which may fail so. */
const sharedFailures: Readonly<Record<string, ResponseObject>> = {
  401: failure(401, [messages.unauthorized], { 'WWW-Authenticate': reference('headers', 'WwwAuthenticate') }),
  413: failure(413, [messages.bodyTooLarge]),
  429: failure(429, [messages.tooManyRequests], { 'Retry-After': reference('headers', 'RetryAfter') }),
  500: failure(500, [messages.internal]),
  502: failure(502, [messages.upstreamAway, messages.upstreamUnusable]),
  503: failure(503, [messages.tooBusy], { 'Retry-After': reference('headers', 'RetryAfter') }),
};

function nameOfStatus(status: string): string {
  return (STATUS_CODES[status] ?? status).replaceAll(' ', '');
}

/** The operation's name, and for a further path of the same operation where it is. */
function operationId(route: Route, taken: ReadonlySet<string>): string {
  const name = nameOf(route);
  const id = `${name.charAt(0).toLowerCase()}${name.slice(1)}`;
  if (!taken.has(id)) return id;
  const words = route.path.split(/\W+/).filter((word) => word !== '' && word !== 'id');
  return `${id}At${words.map((word) => `${word.charAt(0).toUpperCase()}${word.slice(1)}`).join('')}`;
}

function nameOf({ operation, path }: Route): string {
  return operation.name?.value ?? path;
}

/** An object with these properties, all of them, and no other. */
function exactly(properties: Properties): SchemaObject {
  return { type: 'object', properties, required: Object.keys(properties), additionalProperties: false };
}

/** An object that has at least these values. */
function including(values: Readonly<Record<string, unknown>>): SchemaObject {
  const properties = Object.entries(values).map(([name, value]) => [name, { const: value }]);
  return { type: 'object', properties: Object.fromEntries(properties), required: Object.keys(values) };
}

function reference(kind: 'schemas' | 'parameters' | 'headers' | 'responses', name: string): ReferenceObject {
  return { $ref: `#/components/${kind}/${name}` };
}
