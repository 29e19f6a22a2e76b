/** Tools that run GraphQL: one for any query of the model, and one for each persisted operation with a description. */

import {
  type ExecutionResult,
  GraphQLError,
  type GraphQLInputType,
  getNamedType,
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
import type { SchemaObject } from 'openapi3-ts/oas31';
import type { Config } from '../config/config.ts';
import { messages } from '../errors.ts';
import type { PersistedFile } from '../graphql/persisted.ts';
import type { InnerRequest } from '../http/exchange.ts';
import type { HttpResponse } from '../http/response.ts';
import { reference, type Schema, scalars } from '../rest/jsonSchema.ts';
import { schema } from '../schema/schema.ts';
import { readsTokens } from '../schema/types/apiToken.ts';
import { type ObjectSchema, objectSchema, problemWith, type Result, reads, type Tool } from './tool.ts';

/** A tool that runs any query within the limits. */
export function createQueryTool({ MAX_TOKENS }: Pick<Config, 'MAX_TOKENS'>): Tool {
  const inputSchema = objectSchema(
    {
      query: { type: 'string', description: 'A GraphQL document. Only queries are run.' },
      variables: { type: 'object', description: 'The values of its variables, by their names.' },
      operationName: { type: 'string', description: 'Which of its operations is run, if it has several.' },
    },
    { required: ['query'] },
  );
  return {
    name: 'graphqlQuery',
    description:
      "Runs a GraphQL query over the viewer's data, where no other tool gives what is needed. Read the schema first: the resource dovetail://schema.graphql. Lists are connections of at most 100 records.",
    inputSchema,
    annotations: reads,
    requestFor: (given) =>
      problemWith(given, inputSchema) ?? problemWithQuery(given.query, MAX_TOKENS) ?? requestWith(given),
    resultOf,
  };
}

/** A tool for each operation of the file that has a description, and a name that is not taken, and is not about tokens. */
export function persistedTools(
  { operations }: Pick<PersistedFile, 'operations'>,
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
    if (isQuery || (mayWrite && operation.operation === OperationTypeNode.MUTATION))
      tools.set(name, persistedTool({ id, name, operation, isQuery }));
  }
  return [...tools.values()];
}

interface Persisted {
  readonly id: string;
  readonly name: string;
  readonly operation: OperationDefinitionNode;
  readonly isQuery: boolean;
}

function persistedTool({ id, name, operation, isQuery }: Persisted): Tool {
  const inputSchema = schemaOfVariables(operation);
  return {
    name,
    description: operation.description?.value ?? '',
    inputSchema,
    annotations: isQuery ? reads : { readOnlyHint: false, destructiveHint: true, openWorldHint: false },
    requestFor: (variables) =>
      problemWith(variables, inputSchema) ?? requestWith({ documentId: id, variables }),
    resultOf,
  };
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
    if (!isQuery) return messages.onlyQueries;
    return readsTokens(document) ? messages.noTokens : undefined;
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

type Parts = Record<string, SchemaObject>;

/** The JSON Schema of an operation's variables. */
function schemaOfVariables(operation: OperationDefinitionNode): ObjectSchema {
  const parts: Parts = {};
  const properties: Record<string, object> = {};
  const required: string[] = [];
  for (const { variable, type: node, defaultValue, description } of operation.variableDefinitions ?? []) {
    const type = typeFromAST(schema, node as Parameters<typeof typeFromAST>[1]) as
      | GraphQLInputType
      | undefined;
    const name = variable.name.value;
    properties[name] = {
      // A type that only the schema of a subgraph has is not described.
      ...(type && schemaOf(type, parts)),
      ...(description && { description: description.value }),
      ...(defaultValue && { default: valueFromASTUntyped(defaultValue) }),
    };
    if (isNonNullType(type) && !defaultValue) required.push(name);
  }
  return objectSchema(properties, { required, parts });
}

/** The schema allows no null: a value that is not required can be left out. */
function schemaOf(type: GraphQLInputType, parts: Parts): Schema {
  if (isNonNullType(type)) return schemaOf(type.ofType, parts);
  if (isListType(type)) return { type: 'array', items: schemaOf(type.ofType, parts) };
  const named = getNamedType(type);
  if (isEnumType(named)) return { type: 'string', enum: named.getValues().map(({ name }) => name) };
  if (!isInputObjectType(named)) return scalars[named.name] ?? {};
  if (!parts[named.name]) {
    // Added before its fields are described, since they may refer to it.
    const part: SchemaObject = { type: 'object' };
    parts[named.name] = part;
    const fields = Object.values(named.getFields());
    Object.assign(part, {
      ...(named.description && { description: named.description }),
      properties: Object.fromEntries(
        fields.map(({ name, type: ofField, description }) => [
          name,
          { ...schemaOf(ofField, parts), ...(description && { description }) },
        ]),
      ),
      required: fields
        .filter(({ type: ofField, defaultValue }) => isNonNullType(ofField) && defaultValue === undefined)
        .map(({ name }) => name),
      additionalProperties: false,
      ...(named.isOneOf && { minProperties: 1, maxProperties: 1 }),
    });
  }
  return reference('schemas', named.name);
}
