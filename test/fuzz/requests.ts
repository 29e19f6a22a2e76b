/** Generates random requests from the schema and the routes, with the choices of a tape and the names of accounts. */

import {
  type GraphQLArgument,
  type GraphQLInputField,
  type GraphQLInputObjectType,
  type GraphQLInputType,
  getNamedType,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
} from 'graphql';
import { recordTypes } from '../../src/database/models.ts';
import { routes } from '../../src/rest/routes.ts';
import type { Account } from '../support/accounts.ts';
import { graphqlOnce, type TestGateway } from '../support/gateway.ts';

/** The parameters of a GraphQL request over HTTP, without the document. */
export interface DrawnRequest {
  readonly operationName: string | undefined;
  readonly variables: Readonly<Record<string, unknown>> | undefined;
}

export interface DrawnDocument {
  readonly text: string;
  /** Several requests with the same document: one must not affect the result of the next. */
  readonly requests: readonly DrawnRequest[];
}

export interface FuzzRequest {
  /** The account whose token is sent. */
  readonly viewer: 'alice' | 'bob' | 'nobody';
  readonly method: string;
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  /** How often the request is sent in a row: a query takes another path each time. */
  readonly times: number;
}

/** The ids of both accounts, which are numbers that occur nowhere else, and their cursors. */
export interface Names {
  readonly ids: readonly number[];
  readonly cursors: readonly string[];
}

/** @param draw draws a document (`documents.ts`). */
export function drawRequest(
  numbers: Uint8Array,
  names: Names,
  draw: (numbers: Uint8Array, names: Names) => DrawnDocument,
): FuzzRequest {
  const tape = new Tape(numbers.subarray(0, 40));
  const viewer = tape.pick(['alice', 'alice', 'alice', 'alice', 'bob', 'bob', 'bob', 'nobody'] as const);
  const request = tape.chance(35)
    ? drawRest(tape, names)
    : drawGraphql(tape, draw(numbers.subarray(40), names));
  return { viewer, times: 1 + tape.below(3), ...request };
}

type Drawn = Omit<FuzzRequest, 'viewer' | 'times'>;

// REST

const oddIds = ['0', '01', '-1', '1e3', '', 'x', '%00', '..', '2147483648', `1${'0'.repeat(400)}`] as const;
const oddNumbers = [...oddIds, '2', '50', '100', '101'] as const;
const bodies = ['{"isActive":true}', '{"isActive":false}', '', 'null', '{"isActive":true', '\ud800'];
const types = ['application/json; charset=utf-8', 'text/plain', 'multipart/form-data; boundary=x', 'x'];
const accepts = [
  '*/*',
  'application/graphql-response+json',
  'text/event-stream',
  'multipart/mixed;subscriptionSpec=1.0',
  '',
  'application/json;q=0',
];

function drawRest(tape: Tape, names: Names): Drawn {
  const route = tape.pick(routes);
  const id = tape.chance(40) ? tape.pick(oddIds) : String(tape.pick(names.ids));
  const path = tape.chance(5)
    ? tape.pick(['', '/', '/nowhere', '//dtt', '/dtt/1/2', '/../graphql', '/%2e%2e/graphql'])
    : route.path.replace('{id}', id);
  const parameters: string[] = [];
  if (tape.chance(10))
    parameters.push(`targetUserId=${tape.chance(50) ? tape.pick(names.ids) : tape.pick(oddNumbers)}`);
  while (tape.chance(30))
    parameters.push(
      `${tape.pick(['limit', 'offset', 'first', 'limit[]', '__proto__'])}=${tape.pick(oddNumbers)}`,
    );
  const method = tape.chance(15)
    ? tape.pick(['HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'POST', 'GET'])
    : route.method;
  const hasBody = method !== 'GET' && method !== 'HEAD' && !tape.chance(10);
  return {
    method,
    target: `/api/v1${path}${parameters.length > 0 ? `?${parameters.join('&')}` : ''}`,
    headers: drawHeaders(tape),
    body: hasBody ? tape.pick(bodies) : undefined,
  };
}

function drawHeaders(tape: Tape): Record<string, string> {
  const headers: Record<string, string> = {
    'content-type': tape.chance(10) ? tape.pick(types) : 'application/json',
  };
  if (tape.chance(10)) headers.accept = tape.pick(accepts);
  if (tape.chance(5)) headers['if-none-match'] = tape.pick(['*', '"x"', 'W/"x", *', ',,,']);
  if (tape.chance(5)) headers['x-request-id'] = tape.pick(['a', 'x'.repeat(100), '"']);
  if (tape.chance(3)) headers.expect = '100-continue';
  return headers;
}

// GraphQL

const tokens = ['{', '}', '$', '"', '"""', '\u0000', 'fragment', '1e999', '@skip', '\ud83d'];

/** A request with a document that is drawn from the same numbers. */
function drawGraphql(tape: Tape, { text: query, requests }: DrawnDocument): Drawn {
  const { operationName, variables = {} } = requests[0] ?? {};
  const isMutilated = tape.chance(25);
  const text = isMutilated ? mutilate(tape, query) : query;
  const given = isMutilated && tape.chance(40) ? drawOddVariables(tape, variables) : variables;
  const headers = drawHeaders(tape);
  if (tape.chance(12)) {
    const parameters = new URLSearchParams({ query: text });
    if (Object.keys(variables).length > 0) parameters.set('variables', JSON.stringify(given));
    // A lone surrogate cannot be sent in a URL, and a longer URL would be rejected before it is parsed.
    return {
      method: tape.chance(10) ? 'HEAD' : 'GET',
      target: `/graphql?${parameters}`.slice(0, 8_000),
      headers,
      body: undefined,
    };
  }
  const body = JSON.stringify({
    query: text,
    ...(Object.keys(variables).length > 0 && { variables: given }),
    ...(operationName !== undefined && { operationName }),
  });
  return {
    method: tape.chance(3) ? tape.pick(['PUT', 'DELETE', 'OPTIONS', 'PATCH']) : 'POST',
    target: '/graphql',
    headers,
    body: isMutilated && tape.chance(20) ? mutilate(tape, body) : body,
  };
}

/** Removes a part of the text, inserts a token, or repeats a part. */
function mutilate(tape: Tape, text: string): string {
  const at = tape.below(text.length + 1);
  const length = tape.below(12);
  const [before, part, after] = [text.slice(0, at), text.slice(at, at + length), text.slice(at + length)];
  switch (tape.below(4)) {
    case 0:
      return before + after;
    case 1:
      return `${before}${tape.pick(tokens)}${part}${after}`;
    case 2:
      return before + part + part + after;
    default:
      return `${before}${tape.pick(tokens)}`;
  }
}

function drawOddVariables(tape: Tape, variables: Readonly<Record<string, unknown>>): unknown {
  const odd = tape.pick<unknown>([null, [], {}, 'x', 1.5, -1, [[1]], '\u0000', { __proto__: null }]);
  if (tape.chance(20)) return odd;
  return Object.fromEntries(
    Object.entries(variables).map(([name, value]) => [name, tape.chance(50) ? odd : value]),
  );
}

/** What values are drawn by. */
export interface Draft {
  readonly tape: Tape;
  readonly names: Names;
}

/** A value as a GraphQL literal: like JSON, except that field names and enum values have no quotes. */
export function literalOf(value: unknown, type?: GraphQLInputType): string {
  const named = type && getNamedType(type);
  if (Array.isArray(value)) return `[${value.map((item) => literalOf(item, named)).join(', ')}]`;
  if (typeof value === 'string' && isEnumType(named)) return value;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const fields = isInputObjectType(named) ? named.getFields() : {};
  return `{ ${Object.entries(value)
    .map(([name, field]) => `${name}: ${literalOf(field, fields[name]?.type)}`)
    .join(', ')} }`;
}

/** A value for an argument, valid or invalid, of the right type. */
export function drawValue(
  draft: Draft,
  { name, type }: GraphQLArgument | GraphQLInputField,
  depth = 0,
): unknown {
  const { tape, names } = draft;
  const bare = getNullableType(type);
  if (isListType(bare)) {
    const item = () => drawItem(draft, name, bare.ofType, depth);
    // A single item may be given in place of a list.
    return tape.chance(15) ? item() : Array.from({ length: tape.below(4) }, item);
  }
  if (isInputObjectType(bare)) return drawObject(draft, bare, depth);
  if (isEnumType(bare)) return tape.pick(bare.getValues().map((value) => value.name));
  if (bare.name === 'DateTime')
    return tape.pick([
      '2026-01-01T00:30:00Z',
      '2026-01-01T01:20:00.000+01:00',
      '1969-12-31T23:59:59.999Z',
      '2026-01-01',
    ]);
  if (bare.name === 'String' && depth > 0)
    return tape.pick(['', 'Session 1', 'sess', 'of alice', '%', '_', '\\', 'é', '\u0000', 'x']);
  if (bare.name === '_Any') return drawRepresentation(draft);
  if (bare.name === 'Float') return tape.pick([0, 50, 12.5, -1, 1e300]);
  if (name === 'id') return drawGlobalId(draft);
  if (name === 'timeZone')
    return tape.pick(['Europe/Berlin', 'America/Sao_Paulo', 'UTC', 'utc', 'CET', '+01:00', '']);
  if (name === 'databaseId')
    return tape.chance(15) ? tape.pick([0, -1, 1, 2 ** 31 - 1, -(2 ** 31)]) : tape.pick(names.ids);
  if (name === 'after' || name === 'before')
    return tape.chance(30)
      ? tape.pick(['', 'x', 'MA', '\u0000', 'eyJ9', Buffer.from('[null,1]').toString('base64url')])
      : tape.pick(names.cursors);
  if (getNamedType(type).name === 'Int') return tape.pick([1, 2, 3, 5, 100, 0, 101, -1, 2 ** 31 - 1]);
  return getNamedType(type).name === 'Boolean' ? tape.chance(50) : tape.pick(['', 'x', 'User', 'DttSession']);
}

const drawItem = (draft: Draft, name: string, type: GraphQLInputType, depth: number): unknown =>
  getNamedType(type).name === 'ID'
    ? drawGlobalId(draft)
    : // An item is drawn as an argument of its type would be.
      drawValue(draft, { name, type } as GraphQLArgument, depth + 1);

function drawObject(draft: Draft, type: GraphQLInputObjectType, depth: number): Record<string, unknown> {
  const { tape } = draft;
  const all = Object.values(type.getFields());
  const required = all.filter((field) => isNonNullType(field.type));
  // Ends the nesting of objects.
  const leaves = all.filter((field) => !holdsItself(field.type));
  const others = depth > 2 && leaves.length > 0 ? leaves : all;
  // A `@oneOf` object seldom gets no field or several, which is invalid.
  const drawn = tape.chance(type.isOneOf ? 90 : 70)
    ? [tape.pick(others)]
    : tape.chance(50)
      ? []
      : type.isOneOf
        ? others
        : [tape.pick(others), tape.pick(others)];
  return Object.fromEntries(
    [...required, ...drawn].map((field) => [
      field.name,
      !type.isOneOf && tape.chance(3) ? null : drawValue(draft, field, depth + 1),
    ]),
  );
}

/** Whether values of the type may contain values of the same type: filters may, comparisons may not. */
function holdsItself(type: GraphQLInputType): boolean {
  const named = getNamedType(type);
  return isInputObjectType(named) && Object.hasOwn(named.getFields(), 'not');
}

/** A representation of an entity as a federation gateway sends it, sometimes an invalid one. */
function drawRepresentation({ tape, names }: Draft): unknown {
  if (tape.chance(3))
    return tape.pick([7, 'x', {}, { __typename: 'Query', id: 'x' }] as readonly unknown[] as [unknown]);
  const id = drawGlobalId({ tape, names });
  const [typename = ''] = Buffer.from(id, 'base64url').toString().split(':');
  const __typename = tape.chance(3) ? 'User' : typename;
  return tape.chance(50) ? { __typename, id } : { __typename, databaseId: tape.pick(names.ids) };
}

export function drawGlobalId({ tape, names }: Draft): string {
  if (tape.chance(10))
    return tape.pick([
      '',
      'x',
      'VXNlcjo',
      Buffer.from('User:1e3').toString('base64url'),
      Buffer.from('Elsewhere:1').toString('base64url'),
      Buffer.from(`User:1${'0'.repeat(30)}`).toString('base64url'),
    ]);
  return Buffer.from(`${tape.pick(recordTypes)}:${tape.pick(names.ids)}`).toString('base64url');
}

/**
 * A sequence of random numbers from which a test derives its choices. 0, and the end of the sequence, stand for the simplest
 * choice: when fast-check shrinks a failing sequence, the case that is derived from it gets simpler too.
 */

export class Tape {
  readonly #numbers: Uint8Array;
  #place = 0;
  constructor(numbers: Uint8Array) {
    this.#numbers = numbers;
  }
  /** A number below the given one. */
  below(end: number): number {
    const next = this.#numbers[this.#place++] ?? 0;
    return end <= 256 ? next % end : (next * 256 + (this.#numbers[this.#place++] ?? 0)) % end;
  }
  /** True about as often as given, in percent. */
  chance(percent: number): boolean {
    return this.below(100) >= 100 - percent;
  }
  pick<Value>(values: readonly [Value, ...Value[]] | readonly Value[]): Value {
    const value = values[this.below(values.length)];
    if (value === undefined) throw new RangeError('there is nothing to pick from');
    return value;
  }
}

/** @param url of a gateway that has the accounts. */
export async function namesOf(url: string, accounts: readonly Account[]): Promise<Names> {
  return {
    ids: accounts.flatMap(idsOf),
    cursors: (await Promise.all(accounts.map(({ token }) => readCursors(url, token)))).flat(),
  };
}

function idsOf(account: Account): number[] {
  const { userId, username, token, ...owned } = account;
  return [...new Set([userId, ...Object.values(owned).flat()])];
}

async function readCursors(url: string, token: string): Promise<string[]> {
  const query =
    '{ dttSessions { edges { cursor } } dttDevices { edges { cursor } } lockTemplates { edges { cursor } } devices { edges { cursor } } }';
  // `graphqlOnce` uses only the URL of the gateway.
  const { data } = await graphqlOnce({ url } as TestGateway, token, query);
  return Object.values<{ edges: { cursor: string }[] }>(data).flatMap(({ edges }) =>
    edges.map(({ cursor }) => cursor),
  );
}
