/** Tools that run GraphQL: any query that the model writes, and persisted operations that have a description. */

import {
  type DocumentNode,
  type ExecutionResult,
  GraphQLError,
  getOperationAST,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
  parse,
} from 'graphql';
import type { SchemaObject } from 'openapi3-ts/oas31';
import type { Config } from '../config/config.ts';
import { messages } from '../errors.ts';
import type { PersistedFile } from '../graphql/persistedFile.ts';
import type { InnerRequest } from '../http/exchange.ts';
import type { HttpResponse } from '../http/response.ts';
import { describeData } from '../rest/jsonSchema.ts';
import { schema } from '../schema/schema.ts';
import { objectSchema, problemWith, type Result, reads, type Tool } from './tool.ts';
import { schemaOfVariables } from './variables.ts';

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

/** A tool for each operation of the file that has a description, and a name that is not taken. */
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
    const isQuery = operation.operation === OperationTypeNode.QUERY;
    if (isQuery || (mayWrite && operation.operation === OperationTypeNode.MUTATION))
      tools.set(name, persistedTool({ id, name, document, operation, isQuery }));
  }
  return [...tools.values()];
}

interface Persisted {
  readonly id: string;
  readonly name: string;
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
  readonly isQuery: boolean;
}

function persistedTool({ id, name, document, operation, isQuery }: Persisted): Tool {
  const inputSchema = schemaOfVariables(operation);
  const data = schemaOfData({ document, operation, name });
  return {
    name,
    description: operation.description?.value ?? '',
    inputSchema,
    ...(data && { outputSchema: data }),
    annotations: isQuery ? reads : { readOnlyHint: false, destructiveHint: true, openWorldHint: false },
    requestFor: (variables) =>
      problemWith(variables, inputSchema) ?? requestWith({ documentId: id, variables }),
    resultOf,
  };
}

function schemaOfData(persisted: Parameters<typeof describeData>[0]) {
  const parts: Record<string, SchemaObject> = {};
  try {
    return objectSchema({ data: describeData(persisted, schema, parts) }, { parts });
  } catch {
    // The shape of the data depends on the values of variables, or on the types of records.
    return undefined;
  }
}

/**
 * Why the document may not be run, if so. All its operations have to be queries, so that it does not matter which one
 * `operationName` chooses.
 */
function problemWithQuery(query: unknown, maxTokens: number): string | undefined {
  if (typeof query !== 'string') return 'The argument query must be a string';
  try {
    const { definitions } = parse(query, { maxTokens, noLocation: true });
    const isQuery = definitions.every(
      (node) => node.kind !== Kind.OPERATION_DEFINITION || node.operation === OperationTypeNode.QUERY,
    );
    return isQuery ? undefined : messages.onlyQueries;
  } catch (error) {
    // What is wrong with its syntax, whoever runs it says as well. What is too deep for this parser might not be for
    // theirs.
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
