/**
 * Tools: each is a request of the REST or GraphQL API, described for language models. There is one for each operation of the REST API,
 * one for any query of the model, and one for each persisted operation with a description.
 */

import type { JSONObject, ToolAnnotations } from '@modelcontextprotocol/server';
import {
  type ExecutionResult,
  GraphQLError,
  type GraphQLInputType,
  getOperationAST,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
  parse,
  typeFromAST,
  valueFromASTUntyped,
} from 'graphql';
import type { Config } from '../../config/config.ts';
import type { NamedOperations } from '../../graphql/persisted.ts';
import { restPath } from '../../http/exchange.ts';
import { isRecord, parseJson } from '../../http/json.ts';
import type { HttpResponse } from '../../http/response.ts';
import { type Route, routes } from '../../rest/routes.ts';
import { limitSchema, offsetSchema, scalarSchemas } from '../../schema/jsonSchema.ts';
import { pageSize } from '../../schema/loading/pagination.ts';
import { namesToken, readsTokens } from '../../schema/operation.ts';
import { schema } from '../../schema/schema.ts';

const noTokens = 'The tokens of the account are not available here';
export const onlyQueries = 'Only queries are run here: no mutations, and no subscriptions';

/** The request of a tool call. */
export interface InnerRequest {
  readonly method: 'GET' | 'POST';
  readonly target: string;
  /** What its body would have; undefined for a request without a body. */
  readonly content: unknown;
}

export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: ObjectSchema;
  readonly annotations: ToolAnnotations;
  /** The request for a call with these arguments, or a message that says what is wrong with them. */
  requestFor(given: Arguments): InnerRequest | string;
  /** Makes the result of the call from the response to that request. */
  resultOf(response: HttpResponse): Result;
}

export type Arguments = Readonly<Record<string, unknown>>;

export interface Result {
  /** The data; after errors of single fields, the data of the other fields. */
  readonly content: Readonly<Record<string, unknown>> | undefined;
  readonly error: string | undefined;
}

/** The JSON Schema of an object. */
interface ObjectSchema {
  type: 'object';
  properties: Record<string, JSONObject>;
  required: string[];
  additionalProperties: false;
}

/** Hints for assistants that decide about calls. Tools reach nothing outside this service. */
const reads = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false };
const writes = { ...reads, readOnlyHint: false, destructiveHint: true };

/** The JSON Schema of an object that has these properties and no others. @param required the names of those that it must have. */
const objectSchema = (properties: ObjectSchema['properties'], required: string[]): ObjectSchema => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});

/**
 * A message about the first argument that the tool does not have, or about the global id of a token;
 * undefined if there is none.
 */
function problemWithArguments(given: Arguments, { properties }: ObjectSchema): string | undefined {
  const names = Object.keys(properties);
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(properties, name));
  if (unknown !== undefined) {
    const takes = names.length === 0 ? 'none' : names.join(', ');
    return `${JSON.stringify(unknown.slice(0, 100))} is no argument of this tool, which takes ${takes}`;
  }
  return namesToken(given) ? noTokens : undefined;
}

const idSchema = { type: 'integer', minimum: 1, description: 'Integer id of the record.' } as const;

const pageSchemas = {
  limit: { ...limitSchema, default: pageSize.default, description: 'How many records the page has at most.' },
  offset: { ...offsetSchema, default: 0, description: 'How many records to skip.' },
};

/** An operation may have several routes. Its tool is made of the first. */
export const restTools: readonly Tool[] = routes.filter(({ aliasOf }) => aliasOf === undefined).map(toolOf);

function toolOf(route: Route): Tool {
  const hasId = route.path.endsWith('/{id}');
  const fails = route.missing === undefined ? '' : ` Fails with "${route.missing}" if there is none.`;
  const inputs = { ...(hasId && { id: idSchema }), ...(route.isList && pageSchemas) };
  const inputSchema = objectSchema(inputs, hasId ? ['id'] : []);
  return {
    name: route.name,
    description: `${route.summary} ${route.description}${fails}`,
    inputSchema,
    annotations: route.isMutation ? writes : reads,
    requestFor: (given) =>
      problemWithArguments(given, inputSchema) ?? {
        method: route.method,
        target: targetOf(route, given),
        content: route.body?.values,
      },
    resultOf({ status, body }) {
      // A response that comes from another service may have no envelope.
      const content = parseJson(body.toString());
      const { data, error = unreadable } = isRecord(content) ? content : {};
      return status === 200 && data !== undefined
        ? { content: { data }, error: undefined }
        : { content: undefined, error: String(error) };
    },
  };
}

const unreadable = 'The response of the upstream cannot be read';

/** All arguments of a route are numbers. The route says what is wrong with `NaN`. */
const numberIn = (value: unknown): number => (typeof value === 'number' ? value : Number.NaN);

function targetOf({ path }: Route, { id, ...others }: Arguments): string {
  const query = Object.entries(others)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => `${name}=${numberIn(value)}`)
    .join('&');
  const target = `${restPath}${path.replace('{id}', () => String(numberIn(id)))}`;
  return query === '' ? target : `${target}?${query}`;
}

export function createQueryTool({ MAX_TOKENS }: Pick<Config, 'MAX_TOKENS'>): Tool {
  const inputSchema = objectSchema(
    {
      query: { type: 'string', description: 'A GraphQL document. Only queries are run.' },
      variables: { type: 'object', description: 'The values of its variables, by their names.' },
      operationName: { type: 'string', description: 'Which of its operations is run, if it has several.' },
    },
    ['query'],
  );
  return {
    name: 'graphqlQuery',
    description:
      'Runs a GraphQL query over your data, where no other tool gives what is needed. Read the schema first: the resource dovetail://schema.graphql. Lists are connections of at most 100 records.',
    inputSchema,
    annotations: reads,
    requestFor: (given) =>
      problemWithArguments(given, inputSchema) ??
      problemWithQuery(given.query, MAX_TOKENS) ??
      requestWith(given),
    resultOf,
  };
}

/** A tool for each operation of the file that has a description, and a name that is not taken, and is not about tokens. */
export function persistedTools(
  { operations }: Pick<NamedOperations, 'operations'>,
  { mayWrite, taken }: { readonly mayWrite: boolean; readonly taken: ReadonlySet<string> },
): Tool[] {
  const tools = new Map<string, Tool>();
  for (const [id, text] of operations) {
    const document = parse(text);
    const operation = getOperationAST(document);
    const name = operation?.name?.value;
    if (!operation?.description || name === undefined || taken.has(name) || tools.has(name)) continue;
    if (readsTokens(document)) continue;
    const isQuery = operation.operation === OperationTypeNode.QUERY;
    if (!isQuery && !(mayWrite && operation.operation === OperationTypeNode.MUTATION)) continue;
    const inputSchema = schemaOfVariables(operation);
    tools.set(name, {
      name,
      description: operation.description.value,
      inputSchema,
      annotations: isQuery ? reads : { ...writes, idempotentHint: false },
      requestFor: (variables) =>
        problemWithArguments(variables, inputSchema) ?? requestWith({ documentId: id, variables }),
      resultOf,
    });
  }
  return [...tools.values()];
}

/**
 * Why the document may not be run; undefined if it may. All its operations have to be queries, since `operationName` may choose
 * any of them. None may read the account's tokens.
 */
function problemWithQuery(query: unknown, maxTokens: number): string | undefined {
  if (typeof query !== 'string') return 'The argument query must be a string';
  try {
    const document = parse(query, { maxTokens, noLocation: true });
    const { definitions } = document;
    const isQuery = definitions.every(
      (node) => node.kind !== Kind.OPERATION_DEFINITION || node.operation === OperationTypeNode.QUERY,
    );
    if (!isQuery) return onlyQueries;
    return readsTokens(document) ? noTokens : undefined;
  } catch (error) {
    // The API reports errors of syntax by itself. A document that is too deep for this parser is rejected here: the parser of
    // the API might read it.
    return error instanceof GraphQLError ? undefined : 'The query is nested too deeply to be read';
  }
}

const requestWith = (content: object): InnerRequest => ({ method: 'POST', target: '/graphql', content });

function resultOf({ body }: HttpResponse): Result {
  // The body of a response of this API.
  const { data, errors } = JSON.parse(body.toString()) as ExecutionResult;
  if (!errors) return { content: { data }, error: undefined };
  const error = errors
    .map(({ message, path }) => (path ? `${path.join('.')}: ${message}` : message))
    .join('\n');
  return { content: data == null ? undefined : { data }, error };
}

function schemaOfVariables(operation: OperationDefinitionNode): ObjectSchema {
  const properties: Record<string, JSONObject> = {};
  const required: string[] = [];
  for (const { variable, type: node, defaultValue, description } of operation.variableDefinitions ?? []) {
    const type = typeFromAST(schema, node as Parameters<typeof typeFromAST>[1]) as
      | GraphQLInputType
      | undefined;
    const name = variable.name.value;
    properties[name] = {
      // A type that only the schema of a subgraph has is not described.
      ...(type && schemaOf(type)),
      ...(description && { description: description.value }),
      // A constant of GraphQL has a form in JSON.
      ...(defaultValue && { default: valueFromASTUntyped(defaultValue) as JSONObject[string] }),
    };
    if (isNonNullType(type) && !defaultValue) required.push(name);
  }
  return objectSchema(properties, required);
}

/** The schema allows no null: a value that is not required can be left out. */
function schemaOf(type: GraphQLInputType): JSONObject {
  if (isNonNullType(type)) return schemaOf(type.ofType);
  if (isListType(type)) return { type: 'array', items: schemaOf(type.ofType) };
  if (isEnumType(type)) return { type: 'string', enum: type.getValues().map(({ name }) => name) };
  if (isInputObjectType(type))
    return { type: 'object', description: `An input ${type.name} of the GraphQL schema.` };
  return scalarSchemas[type.name] ?? {};
}
