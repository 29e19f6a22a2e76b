/** Generates random requests from the schema and the routes, with the choices of a tape. */

import {
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLInputObjectType,
  type GraphQLInputType,
  type GraphQLNamedType,
  getNamedType,
  getNullableType,
  isAbstractType,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
} from 'graphql';
import { recordTypes } from '../../src/database/models.ts';
import { routes } from '../../src/rest/routes.ts';
import { schema } from '../../src/schema/schema.ts';
import { Tape } from './tape.ts';

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

export function drawRequest(numbers: Uint8Array, names: Names): FuzzRequest {
  const tape = new Tape(numbers);
  const viewer = tape.pick(['alice', 'alice', 'alice', 'alice', 'bob', 'bob', 'bob', 'nobody'] as const);
  const request = tape.chance(35) ? drawRest(tape, names) : drawGraphql(tape, names);
  return { viewer, times: 1 + tape.below(3), ...request };
}

type Drawn = Omit<FuzzRequest, 'viewer' | 'times'>;

// REST

const oddIds = [
  '0',
  '01',
  '+1',
  '-1',
  '1e3',
  '0x10',
  '%201',
  '1.0',
  '%EF%BC%91',
  '',
  'x',
  'null',
  '%00',
  '..',
  '2147483647',
  '2147483648',
  '9007199254740993',
  `1${'0'.repeat(400)}`,
];
const oddNumbers = [
  '0',
  '1',
  '2',
  '50',
  '100',
  '101',
  '-1',
  '01',
  '1e2',
  '',
  'x',
  '%201',
  '9007199254740993',
  `1${'0'.repeat(400)}`,
];
const bodies = [
  '{"isActive":true}',
  '{"isActive":false}',
  '{}',
  '',
  'null',
  '[',
  '{"isActive":true',
  '\ud800',
  '{"isActive":true,"isActive":1}',
];
const types = [
  'application/json',
  'application/json; charset=utf-8',
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'application/graphql',
  'x',
];
const accepts = [
  '*/*',
  'application/json',
  'application/graphql-response+json',
  'text/html',
  'text/event-stream',
  'multipart/mixed',
  'image/png',
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
    parameters.push(
      `targetUserId=${tape.chance(50) ? tape.pick(names.ids) : tape.pick([...oddIds, ...oddNumbers])}`,
    );
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

const tokens = [
  '{',
  '}',
  '(',
  ')',
  '[',
  ']',
  ':',
  '...',
  '$',
  '@',
  '!',
  '|',
  '&',
  '"',
  '"""',
  '#',
  '\n',
  '\u0000',
  '\ufeff',
  'on',
  'fragment',
  'query',
  'mutation',
  'null',
  'true',
  '1',
  '-',
  '1e999',
  '$x',
  '@skip',
  '__typename',
  'é',
  '\ud83d',
];

function drawGraphql(tape: Tape, names: Names): Drawn {
  const { query, variables, operationName } = drawOperation(tape, names);
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

function drawOddVariables(tape: Tape, variables: Record<string, unknown>): unknown {
  const odd: unknown = tape.pick(
    [
      null,
      [],
      {},
      '',
      'x',
      true,
      1.5,
      2 ** 53,
      -1,
      [[1]],
      { a: { b: 1 } },
      '\u0000',
      { __proto__: null },
    ].map((value) => [value]),
  )[0];
  if (tape.chance(20)) return odd;
  return Object.fromEntries(
    Object.entries(variables).map(([name, value]) => [name, tape.chance(50) ? odd : value]),
  );
}

/** An operation while it is generated, with what its selections need: variables, fragments and aliases. */
interface Draft {
  readonly tape: Tape;
  readonly names: Names;
  readonly declared: string[];
  readonly variables: Record<string, unknown>;
  readonly fragments: string[];
  aliases: number;
}

/** The depth of queries is limited, so that their responses stay small. */
const maxDepth = 4;

function drawOperation(tape: Tape, names: Names) {
  const draft: Draft = { tape, names, declared: [], variables: {}, fragments: [], aliases: 0 };
  const kind = tape.chance(8) ? 'mutation' : 'query';
  const root = kind === 'mutation' ? schema.getMutationType() : schema.getQueryType();
  if (!root) throw new Error(`the schema has no ${kind}`);
  const selection = drawSelection(draft, root, maxDepth);
  const name = tape.chance(30) ? 'Drawn' : undefined;
  const declarations = draft.declared.length > 0 ? `(${draft.declared.join(', ')})` : '';
  const isPlain = kind === 'query' && declarations === '' && name === undefined;
  const head = isPlain ? '' : `${kind} ${name ?? ''}${declarations} `;
  return {
    query: [head + selection, ...draft.fragments].join('\n'),
    variables: draft.variables,
    operationName: name !== undefined && tape.chance(50) ? name : undefined,
  };
}

function drawSelection(draft: Draft, type: GraphQLNamedType, depth: number): string {
  const { tape } = draft;
  const fields = isObjectType(type) || isInterfaceType(type) ? Object.values(type.getFields()) : [];
  const usable = depth > 0 ? fields : fields.filter((field) => isLeafType(getNamedType(field.type)));
  const selections: string[] = [];
  do {
    if (tape.chance(8)) selections.push('__typename');
    else if (isAbstractType(type) && tape.chance(60)) {
      const kind = tape.pick(schema.getPossibleTypes(type));
      selections.push(`... on ${kind.name}${drawDirective(draft)} ${drawSelection(draft, kind, depth - 1)}`);
    } else if (usable.length > 0 && !tape.chance(8))
      selections.push(drawField(draft, tape.pick(usable), depth));
    else if (depth > 0) selections.push(drawFragment(draft, type, depth));
    else selections.push('__typename');
  } while (selections.length < 5 && tape.chance(55));
  return `{ ${selections.join(' ')} }`;
}

function drawField(draft: Draft, field: GraphQLField<unknown, unknown>, depth: number): string {
  const { tape } = draft;
  const type = getNamedType(field.type);
  const given = field.args.filter((argument) => isNonNullType(argument.type) || tape.chance(25));
  const list = given.map((argument) => `${argument.name}: ${drawArgument(draft, argument)}`);
  // Two selections of one field with different arguments need different response names.
  const alias = list.length > 0 || !isLeafType(type) || tape.chance(10) ? `a${draft.aliases++}: ` : '';
  const selection = isLeafType(type) ? '' : ` ${drawSelection(draft, type, depth - 1)}`;
  return `${alias}${field.name}${list.length > 0 ? `(${list.join(', ')})` : ''}${drawDirective(draft)}${selection}`;
}

function drawFragment(draft: Draft, type: GraphQLNamedType, depth: number): string {
  const { tape, fragments } = draft;
  const selection = drawSelection(draft, type, depth - 1);
  if (tape.chance(50)) return `...${drawDirective(draft)} ${selection}`;
  const name = `F${fragments.length}`;
  fragments.push(`fragment ${name} on ${type.name} ${selection}`);
  return `...${name}${drawDirective(draft)}`;
}

function drawDirective(draft: Draft): string {
  const { tape } = draft;
  if (!tape.chance(8)) return '';
  const value = tape.chance(50) ? String(tape.chance(50)) : declare(draft, 'Boolean!', tape.chance(50));
  return ` @${tape.pick(['include', 'skip'])}(if: ${value})`;
}

function drawArgument(draft: Draft, argument: GraphQLArgument): string {
  const value = drawValue(draft, argument);
  if (draft.tape.chance(30)) return declare(draft, String(argument.type), value);
  return literalOf(value, argument.type);
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

function declare(draft: Draft, type: string, value: unknown): string {
  const name = `v${draft.declared.length}`;
  draft.declared.push(`$${name}: ${type}`);
  draft.variables[name] = value;
  return `$${name}`;
}

/** A value for an argument, valid or invalid, of the right type. */
export function drawValue(
  draft: Pick<Draft, 'tape' | 'names'>,
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

const drawItem = (
  draft: Pick<Draft, 'tape' | 'names'>,
  name: string,
  type: GraphQLInputType,
  depth: number,
): unknown =>
  getNamedType(type).name === 'ID'
    ? drawGlobalId(draft)
    : // An item is drawn as an argument of its type would be.
      drawValue(draft, { name, type } as GraphQLArgument, depth + 1);

function drawObject(
  draft: Pick<Draft, 'tape' | 'names'>,
  type: GraphQLInputObjectType,
  depth: number,
): Record<string, unknown> {
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
  return (
    isInputObjectType(named) &&
    Object.hasOwn(named.getFields(), 'not') &&
    Object.hasOwn(named.getFields(), 'and')
  );
}

/** A representation of an entity as a federation gateway sends it, sometimes an invalid one. */
function drawRepresentation({ tape, names }: Pick<Draft, 'tape' | 'names'>): unknown {
  if (tape.chance(3))
    return tape.pick([7, 'x', {}, { __typename: 'Query', id: 'x' }] as readonly unknown[] as [unknown]);
  const id = drawGlobalId({ tape, names });
  const [typename = ''] = Buffer.from(id, 'base64url').toString().split(':');
  const __typename = tape.chance(3) ? 'User' : typename;
  return tape.chance(50) ? { __typename, id } : { __typename, databaseId: tape.pick(names.ids) };
}

export function drawGlobalId({ tape, names }: Pick<Draft, 'tape' | 'names'>): string {
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
