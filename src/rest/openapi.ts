/**
 * The OpenAPI document of the REST interface, made from its operations with the descriptions of the GraphQL schema: each operation's
 * data is described as JSON Schema.
 */

import { STATUS_CODES } from 'node:http';
import {
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLEnumType,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  getNamedType,
  isEnumType,
  isListType,
  isNonNullType,
  isObjectType,
  Kind,
  type SelectionNode,
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
import { challengeFor, forbiddenUser, messages } from '../errors.ts';
import { restError } from '../http/errorResponse.ts';
import { isRecord } from '../http/json.ts';
import { descriptionOfUnknown, isNullOnlyWithError, lowerFirst } from '../schema/fields.ts';
import { pageErrors, pageSize } from '../schema/loading/pagination.ts';
import { fragmentsOf } from '../schema/operation.ts';
import { schema } from '../schema/schema.ts';
import { interfaceVersion } from '../version.ts';
import { isOptional, isSpread, nameOf, type Route } from './routes.ts';

interface OpenApiOptions {
  readonly routes: readonly Route[];
  /** The version of the gateway. */
  readonly version: string;
  /** Example data of successful responses, by the names of the operations. */
  readonly examples: Readonly<Record<string, unknown>>;
}

/** The tags of the document, by the type of a route's records. The tag of any other type is its name. */
const tagNames: Readonly<Record<string, string>> = {
  User: 'Users',
  DttDevice: 'DTT',
  DttTemplate: 'DTT Templates',
  DttSession: 'DTT Sessions',
  LkbxDevice: 'LKBX',
  LockTemplate: 'Lock Templates',
  LockSession: 'Lock Sessions',
  OssmDevice: 'OSSM',
};

const introduction = `The older interface to the data that \`/graphql\` serves.

Every response is an envelope: \`{ ok: true, data }\`, or \`{ ok: false, error }\` with a message.
\`HEAD\` works wherever \`GET\` does. Another method on a known path gets a 405 and \`Allow\`,
and an unknown path a 404. A request that is not well-formed HTTP reaches no route: it gets a 400, 408 or 431
in the same envelope. Parameters that an operation does not know are ignored.`;

const tokenDescription = `An API token of the account whose data is asked for. \`npx dovetail token create --user NAME --name laptop\` makes one.`;

/** Describes the routes. */
export function describeRest({ routes, version, examples }: OpenApiOptions): OpenAPIObject {
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
    const { record, data } = describeSelection(route, schemas);
    const tag = tagNames[record.name] ?? record.name;
    tags.set(tag, record.description ?? '');
    const id = operationId(route, ids);
    ids.add(id);
    const operation = operationOf(route, data, examples[nameOf(route)]);
    paths[route.path] = {
      ...paths[route.path],
      [route.method.toLowerCase()]: { operationId: id, tags: [tag], ...operation },
    };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Dovetail',
      version: interfaceVersion,
      'x-gateway-version': version,
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
        Object.entries(sharedFailures).map(([status, response]) => [nameOfStatus(Number(status)), response]),
      ),
      schemas,
    },
  };
}

function operationOf(route: Route, data: Schema, example: unknown): Omit<OperationObject, 'operationId'> {
  const { description, body } = route;
  return {
    summary: description.split(/(?<=\.) /, 1)[0] || nameOf(route),
    description,
    parameters: [
      ...(route.path.includes('{id}') ? [idParameterWith(example)] : []),
      ...(route.isList ? [reference('parameters', 'Limit'), reference('parameters', 'Offset')] : []),
      reference('parameters', 'TargetUserId'),
      reference('parameters', 'Position'),
      ...(route.isMutation ? [] : [reference('parameters', 'IfNoneMatch')]),
    ],
    ...(body && {
      requestBody: {
        required: true,
        content: { 'application/json': { schema: including(body.values), example: body.values } },
      },
    }),
    responses: responsesOf(route, data, example),
  };
}

export const idParameter = {
  name: 'id',
  in: 'path',
  required: true,
  description: 'The integer id of the REST interface. At least 1.',
  schema: { type: 'integer', minimum: 1 },
} as const satisfies ParameterObject;

/** The parameter with the id of the example, if there is one. */
const idParameterWith = (example: unknown): ParameterObject =>
  isRecord(example) && 'id' in example ? { ...idParameter, example: example.id } : idParameter;

function responsesOf(route: Route, data: Schema, example: unknown): ResponsesObject {
  const { body, isList } = route;
  const badRequests = [
    ...(body ? [body.message] : []),
    messages.invalidId,
    ...(isList ? [pageErrors.size('limit'), pageErrors.offset] : []),
    messages.wrongPosition,
  ];
  const shared = [401, 403, ...(body ? [413, 415] : []), 429, 500, 503];
  const cached = { ETag: reference('headers', 'ETag') };
  return {
    200: {
      description: STATUS_CODES[200] ?? '',
      headers: route.isMutation ? { 'Dovetail-Position': reference('headers', 'Position') } : cached,
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
    400: failure(400, badRequests, body && { Accept: reference('headers', 'Accept') }),
    ...(route.missing !== undefined && { 404: failure(404, [route.missing]) }),
    ...Object.fromEntries(shared.map((status) => [status, reference('responses', nameOfStatus(status))])),
  };
}

/** @param errors the messages; or one example of them, where a message depends on the request. */
function failure(
  status: number,
  errors: readonly string[] | string,
  carried?: NonNullable<ResponseObject['headers']>,
): ResponseObject {
  const examples =
    typeof errors === 'string'
      ? { example: restError(errors) }
      : { examples: Object.fromEntries(errors.map((error) => [error, { value: restError(error) }])) };
  return {
    description: STATUS_CODES[status] ?? '',
    ...(carried && { headers: carried }),
    content: { 'application/json': { schema: reference('schemas', 'Error'), ...examples } },
  };
}

const limitSchema: SchemaObject = { type: 'integer', minimum: 1, maximum: pageSize.highest };
const offsetSchema: SchemaObject = { type: 'integer', minimum: 0 };

const positionPattern = '^[1-9][0-9]{0,9}-[0-9A-F]{1,8}/[0-9A-F]{1,8}$';

export const parameters = {
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
  TargetUserId: {
    name: 'targetUserId',
    in: 'query',
    description: "Whose data is meant. Only the viewer's own id is accepted.",
    schema: { type: 'integer', minimum: 1 },
  },
  Position: {
    name: 'Dovetail-Position',
    in: 'header',
    description:
      'That of the response to a write: the response is as new as that write, whichever gateway of several it comes from.',
    schema: { type: 'string', pattern: positionPattern },
  },
  IfNoneMatch: {
    name: 'If-None-Match',
    in: 'header',
    description: 'The `ETag` of a response that the client has. If it still holds, the response is a 304.',
    schema: { type: 'string' },
  },
} as const satisfies Record<string, ParameterObject>;

const headers: Record<string, HeaderObject> = {
  Position: {
    description:
      'How far the database has come with the write; sent back with a request, that request reads nothing older. The embedded database, which has one gateway, gives none.',
    schema: { type: 'string', pattern: positionPattern },
  },
  Accept: {
    description: 'The media type that the body must have, if it was not JSON or not sent as JSON.',
    schema: { type: 'string', const: 'application/json' },
  },
  ETag: {
    description: 'Identifies the content of this response, for `If-None-Match`.',
    required: true,
    schema: { type: 'string' },
  },
  WwwAuthenticate: {
    description: 'The scheme, and what is wrong with the token, if there is one.',
    required: true,
    schema: { type: 'string', pattern: '^Bearer( |$)' },
    examples: Object.fromEntries(
      (['missing', 'malformed', 'invalid'] as const).map((problem) => [
        problem,
        { value: challengeFor(problem)['WWW-Authenticate'] },
      ]),
    ),
  },
  RetryAfter: {
    description: 'Seconds to wait before the next request.',
    required: true,
    schema: { type: 'integer', minimum: 0 },
  },
};

const retryAfter = { 'Retry-After': reference('headers', 'RetryAfter') };

/** Errors that are the same on every route that can fail with them. */
const sharedFailures: Readonly<Record<string, ResponseObject>> = {
  401: failure(401, [messages.unauthorized], { 'WWW-Authenticate': reference('headers', 'WwwAuthenticate') }),
  // Its message has the id from the request.
  403: failure(403, forbiddenUser('2')),
  413: failure(413, [messages.bodyTooLarge]),
  415: failure(415, [messages.bodyEncoded]),
  429: failure(429, [messages.tooManyRequests], retryAfter),
  500: failure(500, [messages.internal]),
  // A message about pending details has their number.
  503: failure(503, messages.tooBusy, retryAfter),
};

function nameOfStatus(status: number): string {
  return (STATUS_CODES[status] ?? '').replaceAll(' ', '');
}

/** The name of the operation. For a further path of the same operation, the words of the path are added to make it unique. */
function operationId(route: Route, taken: ReadonlySet<string>): string {
  const name = nameOf(route);
  const id = lowerFirst(name);
  if (!taken.has(id)) return id;
  const words = route.path.split(/\W+/).filter((word) => word !== 'id');
  return `${id}At${words.map((word) => `${word.charAt(0).toUpperCase()}${word.slice(1)}`).join('')}`;
}

/** The schema of an object that has at least these values. */
function including(values: Readonly<Record<string, unknown>>): SchemaObject {
  const properties = Object.entries(values).map(([name, value]) => [name, { const: value }]);
  return { type: 'object', properties: Object.fromEntries(properties), required: Object.keys(values) };
}

export type Schema = SchemaObject | ReferenceObject;
/** The selected properties of an object, by their names. */
type Selected = Record<string, { readonly schema: Schema; readonly isOptional: boolean }>;

/** What all functions that describe a part of an operation need. */
interface Scope {
  /** The operation's name, for errors. */
  readonly name: string;
  readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  /** The named schemas of the OpenAPI document. */
  readonly components: Record<string, SchemaObject>;
  /** Whether the account may live elsewhere. */
  readonly mayBeUnknown: boolean;
}

/** The JSON Schema of each scalar. */
export const scalars: Readonly<Record<string, SchemaObject>> = {
  Int: { type: 'integer', format: 'int32' },
  Float: { type: 'number' },
  String: { type: 'string' },
  ID: { type: 'string' },
  Boolean: { type: 'boolean' },
  DateTime: { type: 'string', format: 'date-time' },
  LocalDate: { type: 'string', format: 'date' },
};

/**
 * Describes the data of a route: its schema, and the type of its records.
 * @param components the schemas of enums, and of objects that are selected by a single fragment, are added to it.
 * @param mayBeUnknown whether fields are null that may be unknown for an account that lives elsewhere.
 * @throws for a selection whose JSON can have different shapes.
 */
export function describeSelection(
  route: Route,
  components: Record<string, SchemaObject>,
  mayBeUnknown = false,
): { readonly data: Schema; readonly record: GraphQLObjectType } {
  const scope = { name: nameOf(route), fragments: fragmentsOf(route.document), components, mayBeUnknown };
  const root = schema.getRootType(route.operation.operation);
  const node = route.operation.selectionSet.selections[0];
  const field = node?.kind === Kind.FIELD ? root?.getFields()[node.name.value] : undefined;
  if (node?.kind !== Kind.FIELD || !field) throw new Error(`${scope.name} does not select its data first`);

  // If the route responds to null with an error, its data is never null.
  const selected =
    route.missing === undefined
      ? schemaOfField(field, node, scope)
      : presentSchemaOf(field.type, node, scope);
  const data =
    route.isList && 'properties' in selected
      ? exactly({ ...selected.properties, pagination: reference('schemas', 'Pagination') })
      : selected;
  return { data, record: recordOf(getNamedType(field.type), node, route) };
}

/** The type of a route's records. In a list and in the payload of a mutation, the records are one level below the field. */
function recordOf(type: GraphQLNamedType, { selectionSet }: FieldNode, route: Route): GraphQLObjectType {
  if (!isObjectType(type)) throw new Error(`${nameOf(route)} does not give a record`);
  const below = selectionSet?.selections.find(
    (part) => part.kind === Kind.FIELD && (route.isList || isSpread(part)),
  );
  const inner = below?.kind === Kind.FIELD && getNamedType(type.getFields()[below.name.value]?.type);
  return isObjectType(inner) ? inner : type;
}

/**
 * Three kinds of nullable fields are never null here: a field that is null only with an error, since the response is successful; a
 * field that may be unknown only for an account that lives elsewhere, which REST does not serve, but tools do; and an optional field, which
 * is left out instead.
 */
function schemaOfField(field: GraphQLField<unknown, unknown>, node: FieldNode, scope: Scope): Schema {
  const hasValue =
    isNullOnlyWithError(field) ||
    isOptional(node) ||
    (descriptionOfUnknown(field) !== undefined && !scope.mayBeUnknown);
  return (hasValue ? presentSchemaOf : schemaOf)(field.type, node, scope);
}

function schemaOf(type: GraphQLOutputType, node: FieldNode, scope: Scope): Schema {
  const present = presentSchemaOf(type, node, scope);
  if (isNonNullType(type)) return present;
  return '$ref' in present
    ? { anyOf: [present, { type: 'null' }] }
    : { ...present, type: [...[present.type ?? []].flat(), 'null'] };
}

/** The schema of a value that is not null. */
function presentSchemaOf(type: GraphQLOutputType, node: FieldNode, scope: Scope): Schema {
  if (isNonNullType(type)) return presentSchemaOf(type.ofType, node, scope);
  if (isListType(type)) return { type: 'array', items: schemaOf(type.ofType, node, scope) };
  if (isObjectType(type) && node.selectionSet) return objectSchemaOf(node.selectionSet, type, scope);
  if (isEnumType(type)) {
    scope.components[type.name] ??= enumSchemaOf(type);
    return reference('schemas', type.name);
  }
  const scalar = scalars[getNamedType(type).name];
  if (!scalar) throw new Error(`${scope.name} selects ${type}, which has no type in JSON`);
  return scalar;
}

/** The schema of a selection. If the selection is a single fragment, the schema is a component with the fragment's name. */
function objectSchemaOf(selection: SelectionSetNode, type: GraphQLObjectType, scope: Scope): Schema {
  const [first, ...others] = selection.selections;
  const properties = propertiesOf(selection, type, scope);
  const names = Object.keys(properties);
  const object = {
    ...exactly(
      Object.fromEntries(names.map((name) => [name, properties[name]?.schema ?? {}])),
      names.filter((name) => !properties[name]?.isOptional),
    ),
    description: type.description ?? '',
  };
  if (first?.kind !== Kind.FRAGMENT_SPREAD || others.length > 0) return object;
  const name = first.name.value.replace(/Fields$/, '');
  scope.components[name] = object;
  return reference('schemas', name);
}

const propertiesOf = ({ selections }: SelectionSetNode, type: GraphQLObjectType, scope: Scope): Selected =>
  Object.assign({}, ...selections.map((part) => propertiesFrom(part, type, scope)));

/** The properties of one part of a selection: one for a field, several for a fragment or a field with `@spread`. */
function propertiesFrom(part: SelectionNode, type: GraphQLObjectType, scope: Scope): Selected {
  if (part.kind !== Kind.FIELD) {
    const fragment = part.kind === Kind.INLINE_FRAGMENT ? part : scope.fragments.get(part.name.value);
    const condition = fragment?.typeCondition?.name.value ?? type.name;
    if (!fragment || condition !== type.name)
      throw new Error(`${scope.name} selects what only some of its records have`);
    return propertiesOf(fragment.selectionSet, type, scope);
  }
  const field = type.getFields()[part.name.value];
  if (!field) throw new Error(`${scope.name} selects ${part.name.value}, which is not described`);
  const inner = getNamedType(field.type);
  if (isSpread(part) && part.selectionSet && isObjectType(inner))
    return propertiesOf(part.selectionSet, inner, scope);
  const description = descriptionOfUnknown(field) || field.description;
  const schema = { ...schemaOfField(field, part, scope), ...(description && { description }) };
  return { [(part.alias ?? part.name).value]: { schema, isOptional: isOptional(part) } };
}

function enumSchemaOf(type: GraphQLEnumType): SchemaObject {
  const values = type.getValues();
  const explained = values.map(({ name, description }) => `- \`${name}\`: ${description}`);
  return {
    type: 'string',
    enum: values.map(({ name }) => name),
    description: [type.description, '', ...explained].join('\n'),
  };
}

/** The schema of an object that has no other properties. */
export function exactly(
  properties: Readonly<Record<string, Schema>>,
  required: string[] = Object.keys(properties),
): SchemaObject {
  return { type: 'object', properties, required, additionalProperties: false };
}

/** A reference to a component of the document. */
export function reference(
  kind: 'schemas' | 'parameters' | 'headers' | 'responses',
  name: string,
): ReferenceObject {
  return { $ref: `#/components/${kind}/${name}` };
}
