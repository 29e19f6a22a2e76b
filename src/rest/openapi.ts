/**
 * The OpenAPI document of the REST interface, made from its operations: each operation's data is described as JSON Schema, with the
 * descriptions of the GraphQL schema or those of `overrides.ts`.
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
import { program } from '../config/config.ts';
import { challengeFor, forbiddenUser, messages, scopeNeeded } from '../errors.ts';
import { restError } from '../http/errorResponse.ts';
import { restPath } from '../http/exchange.ts';
import { isRecord } from '../http/json.ts';
import { ambiguities } from '../http/request.ts';
import { isNullIfUnknown, isNullOnlyWithError } from '../schema/fields.ts';
import { pageErrors, pageSize } from '../schema/loading/pagination.ts';
import { fragmentsOf } from '../schema/operation.ts';
import { schema } from '../schema/schema.ts';
import { interfaceVersion } from '../version.ts';
import { longestWait } from './followed.ts';
import { overrides } from './overrides.ts';
import { isOnePage, isOptional, isSpread, type Route } from './routes.ts';

interface OpenApiOptions {
  readonly routes: readonly Route[];
  /** The version of the gateway. */
  readonly version: string;
  /** Example data of successful responses, by the names in `operations.graphql`. */
  readonly examples: Readonly<Record<string, unknown>>;
  /** Where the routes are. */
  readonly url?: string;
  /** Messages in front of another service, by status. */
  readonly errors?: Readonly<Record<number, readonly string[]>> | undefined;
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
\`HEAD\` works wherever \`GET\` does. An unknown path gets a 404. Parameters that an operation does not know are ignored.

With \`Accept: text/event-stream\`, every \`GET\` sends its response as an event, and again after each change. The
\`data\` of an event is the envelope, and its \`id\` the \`ETag\`.

Objects may have other properties as well: pass over those that you do not know. A gateway in front of another service passes on its data
as it comes, which may lack some properties.`;

const tokenDescription = `An API token of your account. \`${program()} token create --user NAME --name laptop\` makes one.`;

/** Describes the routes. */
export function describeRest({
  routes,
  version,
  examples,
  url = restPath,
  errors = {},
}: OpenApiOptions): OpenAPIObject {
  const schemas: Record<string, SchemaObject> = {
    // Not `Error`, which is a name of its own in most languages.
    ErrorResponse: objectOf({
      ok: { type: 'boolean', const: false },
      error: { type: 'string', description: 'What went wrong, for people to read.' },
    }),
    Pagination: objectOf({
      limit: { ...limitSchema, description: 'How many records the page has at most.' },
      offset: { ...offsetSchema, description: 'How many records come before the page.' },
    }),
  };
  const tags = new Map<string, string>();
  const paths: NonNullable<OpenAPIObject['paths']> = {};
  for (const route of routes) {
    const { record, data } = describeSelection(route, schemas);
    const tag = tagNames[record.name] ?? record.name;
    tags.set(tag, descriptionOf(record));
    const operation = operationOf(route, data, examples[route.operation.name?.value ?? '']);
    paths[route.path] = {
      ...paths[route.path],
      [route.method.toLowerCase()]: { operationId: route.name, tags: [tag], ...operation },
    };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Dovetail',
      version: interfaceVersion,
      'x-gateway-version': version,
      description: introduction,
      contact: { name: 'The operator of this gateway' },
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url, description: 'The gateway that sent this document.' }],
    security: [{ token: [] }],
    tags: [...tags].map(([name, description]) => ({ name, description })),
    paths,
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer', description: tokenDescription } },
      parameters,
      headers,
      responses: Object.fromEntries(
        Object.entries(sharedFailures).map(([key, [own, ...names]]) => {
          const status = Number(key);
          return [nameOfStatus(status), failure(status, [...own, ...(errors[status] ?? [])], ...names)];
        }),
      ),
      schemas,
    },
  };
}

function operationOf(route: Route, data: Schema, example: unknown): Omit<OperationObject, 'operationId'> {
  const { summary, description, body } = route;
  return {
    summary,
    description,
    parameters: [
      ...(route.path.includes('{id}') ? [idParameterWith(example)] : []),
      ...(route.isList ? [reference('parameters', 'Limit'), reference('parameters', 'Offset')] : []),
      reference('parameters', 'TargetUserId'),
      reference('parameters', 'Position'),
      ...(route.isMutation
        ? []
        : ['IfNoneMatch', 'Prefer', 'LastEventId'].map((name) => reference('parameters', name))),
    ],
    // Not a media type of the response: generators would make a function of it that cannot read JSON any more.
    ...(!route.isMutation && { 'x-event-stream': true }),
    ...(body && {
      requestBody: {
        description: 'Send it with `Content-Type: application/json`: with another type it counts as missing.',
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
  description: 'Integer id of the record.',
  schema: { type: 'integer', minimum: 1 },
} as const satisfies ParameterObject;

/** The parameter with the id of the example, if there is one. */
const idParameterWith = (example: unknown): ParameterObject =>
  isRecord(example) && 'id' in example ? { ...idParameter, example: example.id } : idParameter;

function responsesOf(route: Route, data: Schema, example: unknown): ResponsesObject {
  const { body, isList, isMutation, missing } = route;
  const badRequests = [
    ...(body ? [body.message] : []),
    messages.invalidId,
    ...(isList ? [pageErrors.size('limit'), pageErrors.offset] : []),
    messages.wrongPosition,
    ...Object.values(ambiguities),
  ];
  const withoutBody = body ? [] : [413, 415];
  const shared = Object.keys(sharedFailures).filter((status) => !withoutBody.includes(Number(status)));
  const forbidden = isMutation && failure(403, [scopeNeeded(route.scope), forbiddenUser('2')]);
  const cached = carried('ETag', 'Age', 'Preference-Applied');
  return {
    200: {
      description: STATUS_CODES[200] ?? '',
      headers: isMutation ? carried('Dovetail-Position') : cached,
      content: {
        'application/json': {
          schema: objectOf({ ok: { type: 'boolean', const: true }, data }),
          ...(example !== undefined && { example: { ok: true, data: example } }),
        },
      },
    },
    ...(!isMutation && {
      304: { description: 'The response has not changed.', headers: cached },
    }),
    400: failure(400, badRequests, ...(body ? ['Accept'] : [])),
    ...(missing !== undefined && { 404: failure(404, [missing]) }),
    ...Object.fromEntries(
      shared.map((status) => [status, reference('responses', nameOfStatus(Number(status)))]),
    ),
    ...(forbidden && { 403: forbidden }),
  };
}

/** When a request gets an error of this status. */
const reasons: Readonly<Record<number, string>> = {
  400: 'The request is invalid.',
  401: 'The request has no valid token.',
  403: 'The request names another user, or its token lacks the scope.',
  404: 'You have no such record.',
  405: 'The path does not take the method.',
  408: 'The request took too long to arrive.',
  413: 'The body is larger than 64 KiB.',
  415: 'The body has a `Content-Encoding`.',
  429: 'There were too many requests.',
  431: 'The headers are too large.',
  500: 'Something unexpected happened.',
  502: 'Only in front of another service: it cannot be reached, or its response cannot be used.',
  503: 'The request cannot be served now.',
  504: 'Only in front of another service: it did not respond in time.',
};

/** @param names the headers, besides those of every response. */
function failure(status: number, errors: readonly string[], ...names: readonly string[]): ResponseObject {
  const examples = Object.fromEntries(errors.map((error) => [error, { value: restError(error) }]));
  return {
    description: reasons[status] ?? '',
    headers: carried(...names),
    content: {
      'application/json': {
        schema: reference('schemas', 'ErrorResponse'),
        ...(errors.length > 0 && { examples }),
      },
    },
  };
}

/** References to the headers of a response, by their names. */
function carried(...names: readonly string[]): Record<string, ReferenceObject> {
  const all = ['X-Request-Id', 'RateLimit', 'RateLimit-Policy', ...names];
  return Object.fromEntries(all.map((name) => [name, reference('headers', name)]));
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
    description: 'User whose data to return. Only your own id is accepted.',
    schema: { type: 'integer', minimum: 1 },
  },
  Position: {
    name: 'Dovetail-Position',
    in: 'header',
    description:
      'The header of the response to a write. The response shows that write, whichever of several gateways it comes from.',
    schema: { type: 'string', pattern: positionPattern },
  },
  IfNoneMatch: {
    name: 'If-None-Match',
    in: 'header',
    description: 'The `ETag` of a response that you have. If it has not changed, the response is a 304.',
    schema: { type: 'string' },
  },
  Prefer: {
    name: 'Prefer',
    in: 'header',
    description: `\`wait=30\`, with \`If-None-Match\`: waits so many seconds for a change before it responds with a 304, ${longestWait} at most.`,
    schema: { type: 'string' },
  },
  LastEventId: {
    name: 'Last-Event-ID',
    in: 'header',
    description:
      'With `Accept: text/event-stream`: the `id` of the last event that you have. It is not sent again.',
    schema: { type: 'string' },
  },
} as const satisfies Record<string, ParameterObject>;

const headers: Record<string, HeaderObject> = {
  'X-Request-Id': {
    description: 'Names the request in the log of the gateway: that of the request, if it is usable.',
    schema: { type: 'string' },
  },
  RateLimit: {
    description: 'How many requests are left (`r`), and in how many seconds the count starts again (`t`).',
    schema: { type: 'string' },
    example: '"token";r=599;t=60',
  },
  'RateLimit-Policy': {
    description: 'The limit: so many requests (`q`) in so many seconds (`w`).',
    schema: { type: 'string' },
    example: '"token";q=600;w=60',
  },
  Age: {
    description: 'Only in front of another service: for how many seconds the gateway has had the response.',
    schema: { type: 'integer', minimum: 0 },
  },
  Allow: {
    description: 'The methods that the path takes.',
    required: true,
    schema: { type: 'string' },
    example: 'GET, HEAD',
  },
  'Dovetail-Position': {
    description:
      'How far the database was after the write. A request that carries it reads nothing older. The embedded database has only one gateway and sends none.',
    schema: { type: 'string', pattern: positionPattern },
  },
  Accept: {
    description: 'The media type that is accepted, if the body was not JSON or not sent as JSON.',
    schema: { type: 'string', const: 'application/json' },
  },
  'Accept-Encoding': {
    description: 'The only encoding that is accepted.',
    required: true,
    schema: { type: 'string', const: 'identity' },
  },
  'Preference-Applied': {
    description: 'How long the response could wait for a change, if `Prefer` asked for that.',
    schema: { type: 'string', pattern: '^wait=[0-9]+$' },
    example: 'wait=30',
  },
  ETag: {
    description: 'Identifies the content of this response, for `If-None-Match`.',
    required: true,
    schema: { type: 'string' },
  },
  'WWW-Authenticate': {
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
  'Retry-After': {
    description: 'Seconds to wait before the next request.',
    required: true,
    schema: { type: 'integer', minimum: 0 },
  },
};

/** The messages, and the names of further headers, of the errors that are the same on every route that can fail with them. */
const sharedFailures: Readonly<Record<string, readonly [messages: readonly string[], ...names: string[]]>> = {
  401: [[messages.unauthorized], 'WWW-Authenticate'],
  403: [[forbiddenUser('2')]],
  405: [[messages.methodNotAllowed], 'Allow'],
  408: [[messages.tooSlow]],
  413: [[messages.bodyTooLarge]],
  415: [[messages.bodyEncoded], 'Accept-Encoding'],
  429: [[messages.tooManyRequests], 'Retry-After'],
  431: [[messages.headersTooLarge]],
  500: [[messages.internal]],
  502: [[]],
  503: [[messages.databaseAway, messages.primaryBehind, messages.tooBusy], 'Retry-After'],
  504: [[]],
};

function nameOfStatus(status: number): string {
  return (STATUS_CODES[status] ?? '').replaceAll(' ', '');
}

/** The schema of an object that has at least these values. */
function including(values: Readonly<Record<string, unknown>>): SchemaObject {
  // Some generators need the type beside the value.
  const properties = Object.entries(values).map(([name, value]) => [
    name,
    { type: typeof value, const: value },
  ]);
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
  const scope = { name: route.name, fragments: fragmentsOf(route.document), components, mayBeUnknown };
  const root = schema.getRootType(route.operation.operation);
  const node = route.operation.selectionSet.selections[0];
  const field = node?.kind === Kind.FIELD ? root?.getFields()[node.name.value] : undefined;
  if (node?.kind !== Kind.FIELD || !field) throw new Error(`${scope.name} does not select its data first`);

  // If the route responds to null with an error, its data is never null.
  const selected =
    route.missing === undefined
      ? schemaOfField(field, node, scope)
      : presentSchemaOf(field.type, node, scope);
  const list = isOnePage(route.document) ? objectOf({ data: { type: 'array', items: selected } }) : selected;
  const data =
    route.isList && 'properties' in list
      ? objectOf({ ...list.properties, pagination: reference('schemas', 'Pagination') })
      : list;
  return { data, record: recordOf(getNamedType(field.type), node, route) };
}

/** The type of a route's records. In a list and in the payload of a mutation, the records are one level below the field. */
function recordOf(type: GraphQLNamedType, { selectionSet }: FieldNode, route: Route): GraphQLObjectType {
  if (!isObjectType(type)) throw new Error(`${route.name} does not give a record`);
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
    isNullOnlyWithError(field) || isOptional(node) || (isNullIfUnknown(field) && !scope.mayBeUnknown);
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
    ...objectOf(
      Object.fromEntries(names.map((name) => [name, properties[name]?.schema ?? {}])),
      names.filter((name) => !properties[name]?.isOptional),
    ),
    description: descriptionOf(type),
  };
  if (first?.kind !== Kind.FRAGMENT_SPREAD || others.length > 0) return object;
  const name = first.name.value.replace(/Fields$/, '');
  scope.components[name] = object;
  return reference('schemas', name);
}

/** The description of a type. */
const descriptionOf = ({ name, description }: GraphQLObjectType) =>
  overrides[name]?.description ?? description ?? '';

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
  const { values, description = field.description } =
    overrides[`${type.name}.${field.name}`] ?? overrides[field.name] ?? {};
  const schema = {
    ...schemaOfField(field, part, scope),
    ...(values && !scope.mayBeUnknown && { enum: [...values] }),
    ...(description && { description }),
  };
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

/** The schema of an object. It may have other properties as well, so that adding one breaks no program. */
export function objectOf(
  properties: Readonly<Record<string, Schema>>,
  required: string[] = Object.keys(properties),
): SchemaObject {
  return { type: 'object', properties, required };
}

/** A reference to a component of the document. */
export function reference(
  kind: 'schemas' | 'parameters' | 'headers' | 'responses',
  name: string,
): ReferenceObject {
  return { $ref: `#/components/${kind}/${name}` };
}
