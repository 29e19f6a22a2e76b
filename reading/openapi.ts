/**
 * The OpenAPI document of the REST interface, made from its operations. A test writes it into `openapi.json`, which the gateway serves, and
 * of which the build makes a page (`restReference.ts`).
 */

import { STATUS_CODES } from 'node:http';
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
import { challengeFor, forbiddenUser, messages, scopeNeeded, tooManySubscriptions } from '../src/errors.ts';
import { longestWait } from '../src/http/connections.ts';
import { restError } from '../src/http/errorResponse.ts';
import { restPath } from '../src/http/exchange.ts';
import { isRecord } from '../src/http/json.ts';
import { ambiguities } from '../src/http/request.ts';
import type { Route } from '../src/rest/routes.ts';
import { limitSchema, offsetSchema } from '../src/schema/jsonSchema.ts';
import { pageErrors } from '../src/schema/loading/pagination.ts';
import { interfaceVersion, release } from '../src/version.ts';
import {
  describeSelection,
  descriptionOf,
  idParameter,
  listParameters,
  objectOf,
  reference,
  type Schema,
} from './jsonSchema.ts';

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

const tokenDescription =
  'An API token of your account. The home page of the gateway has the command that makes one.';

/**
 * Describes the routes.
 * @param examples data of successful responses, by the names in `operations.graphql`.
 */
export function describeRest(
  routes: readonly Route[],
  examples: Readonly<Record<string, unknown>> = {},
): OpenAPIObject {
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
      'x-gateway-version': release,
      description: introduction,
      contact: { name: 'The operator of this gateway' },
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: restPath, description: 'The gateway that sent this document.' }],
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
          return [nameOfStatus(status), failure(status, own, ...names)];
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
  429: 'There were too many requests, or too many followed routes and subscriptions are open.',
  431: 'The headers are too large.',
  500: 'Something unexpected happened.',
  502: 'Only in front of another service: it cannot be reached, or its response cannot be used.',
  503: 'The request cannot be served now. A message about the upstream comes only in front of another service.',
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

const positionPattern = '^[1-9][0-9]{0,9}-[0-9A-F]{1,8}/[0-9A-F]{1,8}$';

const parameters: Record<string, ParameterObject> = {
  ...listParameters,
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
};

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

/** What only a gateway in front of another service sends. These are the texts of its extension, whose test compares them. */
const elsewhere = {
  unreachable: 'The upstream cannot be reached',
  tooLarge: 'The response of the upstream is larger than 4 MiB',
  unusable: 'The upstream rejected the request or sent what cannot be read; nothing was changed here',
  tooSlow: 'The upstream did not respond in time',
  accountUnreachable:
    'The account cannot be reached upstream without a token of the upstream; nothing was changed here',
};

/** The messages, and the names of further headers, of the errors that are the same on every route that can fail with them. */
const sharedFailures: Readonly<Record<string, readonly [messages: readonly string[], ...names: string[]]>> = {
  401: [[messages.unauthorized], 'WWW-Authenticate'],
  403: [[forbiddenUser('2')]],
  405: [[messages.methodNotAllowed], 'Allow'],
  408: [[messages.tooSlow]],
  413: [[messages.bodyTooLarge]],
  415: [[messages.bodyEncoded], 'Accept-Encoding'],
  // 50 stands for MAX_SUBSCRIPTIONS, as in docs/rest.md.
  429: [[messages.tooManyRequests, tooManySubscriptions(50)], 'Retry-After'],
  431: [[messages.headersTooLarge]],
  500: [[messages.internal]],
  502: [[elsewhere.unreachable, elsewhere.tooLarge, elsewhere.unusable]],
  503: [
    [
      ...[messages.databaseAway, messages.primaryBehind, messages.tooBusy],
      ...[elsewhere.unreachable, elsewhere.accountUnreachable],
    ],
    'Retry-After',
  ],
  504: [[elsewhere.tooSlow]],
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
