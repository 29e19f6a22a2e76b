/**
 * Operations made ready to run: parsed and checked once, run many times. A query is compiled where compiled code
 * gives exactly the result of graphql-js; all else is graphql-js's, and so is every error.
 */

import {
  type DocumentNode,
  type ExecutionResult,
  execute,
  GraphQLError,
  type GraphQLObjectType,
  type GraphQLSchema,
  getOperationAST,
  getVariableValues,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
  separateOperations,
  visit,
} from 'graphql';
import { type CompiledQuery, compileQuery, isCompiledQuery } from 'graphql-jit';
import { operationSpans } from '../channels.ts';
import { fieldOf } from '../database/reader/models.ts';
import { nameArguments } from './argumentErrors.ts';
import { type CompiledDocument, compiledDocument, findReadType } from './compiledDocument.ts';
import { type CompilerSchema, compilerSchema } from './compilerSchema.ts';
import { conditionsIn, decisionsOf } from './conditions.ts';
import type { Context } from './context.ts';
import { isModel } from './loading/visible.ts';
import { schema as ownSchema } from './schema.ts';

export interface PreparedOperation {
  readonly type: OperationTypeNode;
  /** See `labelOf`. */
  readonly label: string;
  /** The result that graphql-js gives. Without data nothing was executed, or the whole result is null. */
  run(variables: Readonly<Record<string, unknown>>, context: Context): Promise<ExecutionResult>;
}

/** How the operations of this process were run: as compiled code, by graphql-js, or by both, because of an error. */
export const executions = { compiled: 0, interpreted: 0, repeated: 0 };

/** How many versions of one operation may be compiled; graphql-js runs any others. */
const maxVersions = 8;

/** The kind and the root field of a valid operation, as the log has them: one of few texts, none of them a client's. */
export function labelOf({ operation, selectionSet }: OperationDefinitionNode): string {
  const [selection, ...others] = selectionSet.selections;
  const isOneField = selection?.kind === Kind.FIELD && others.length === 0;
  return `${operation} ${isOneField ? selection.name.value : 'of several fields'}`;
}

/**
 * Prepares a query or mutation of a valid document.
 * @param schema if it is not the gateway's own.
 * @returns undefined when there is none of that name, or it is a subscription.
 */
export function prepare(
  document: DocumentNode,
  operationName?: string,
  schema: GraphQLSchema = ownSchema,
): PreparedOperation | undefined {
  const operation = getOperationAST(document, operationName);
  if (!operation || operation.operation === OperationTypeNode.SUBSCRIPTION) return undefined;
  const label = labelOf(operation);
  const compiledFor = createVersions(schema, document, operation);

  const run: PreparedOperation['run'] = async (variables, context) => {
    const coerced = coerceVariables(schema, operation, variables);
    const compiled = coerced && compiledFor(coerced);
    const values = coerced && compiled?.values(coerced);
    if (compiled && values) {
      const result = await compiled.query(undefined, context, values);
      if (!result.errors) {
        executions.compiled++;
        return result;
      }
      // Masked errors need no wording of graphql-js, and a failing database gets no second attempt.
      if (result.errors.some(({ originalError: cause }) => cause && !(cause instanceof GraphQLError))) {
        executions.compiled++;
        return result;
      }
      // Compiled code words its errors differently. A query writes nothing, so graphql-js can run it again for the right words.
      executions.repeated++;
      context.loaders.clear();
    } else {
      executions.interpreted++;
    }
    const result = await execute({
      schema,
      document,
      operationName,
      variableValues: variables,
      contextValue: context,
      // For a client Yoga says what is wrong with the variables.
      options: { maxCoercionErrors: 1 },
      hideSuggestions: true,
    });
    nameArguments(document, result.errors);
    return result;
  };
  return {
    type: operation.operation,
    label,
    run: (variables, context) =>
      operationSpans.hasSubscribers
        ? operationSpans.tracePromise(async () => run(variables, context), { label })
        : run(variables, context),
  };
}

/**
 * The values of an operation's variables, with their defaults, or undefined where some are wrong. It stops at the first
 * wrong one: to describe all that a large body can have takes seconds.
 */
export function coerceVariables(
  schema: GraphQLSchema,
  operation: OperationDefinitionNode,
  variables: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> | undefined {
  const definitions = operation.variableDefinitions ?? [];
  return getVariableValues(schema, definitions, variables, { maxErrors: 1 }).coerced;
}

/** How many versions of the operations of a valid document may be compiled, one for each at least. */
export function countVersions(document: DocumentNode): number {
  const operations = Object.values(separateOperations(document));
  const counts = operations.map((operation) => Math.min(2 ** conditionsIn(operation).length, maxVersions));
  return Math.max(1, ...counts);
}

interface Compiled extends Pick<CompiledDocument, 'values'> {
  readonly query: CompiledQuery['query'];
}

/**
 * What runs an operation for given variables, as compiled code. graphql-jit writes the conditions of `@skip` and
 * `@include` onto nodes that several places share, so it is given none: each combination of what the conditions'
 * variables say makes a version of the operation without directives.
 */
function createVersions(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): (variables: Readonly<Record<string, unknown>>) => Compiled | undefined {
  const own = separateOperations(document)[operation.name?.value ?? ''];
  // A mutation cannot run again for the right words of its errors, so it is never compiled.
  if (!own || operation.operation !== OperationTypeNode.QUERY || hasOddName(own)) return () => undefined;
  const conditions = conditionsIn(own);
  // Given null all the same, it may stand where null must not: an error that compiled code does not always know.
  const withDefault = (operation.variableDefinitions ?? []).filter(({ defaultValue }) => defaultValue);
  const versions = new Map<string, Compiled | undefined>();

  return (variables) => {
    if (withDefault.some(({ variable }) => variables[variable.name.value] === null)) return undefined;
    const key = decisionsOf(conditions, variables);
    if (!versions.has(key) && versions.size < maxVersions) versions.set(key, compile(schema, own, variables));
    return versions.get(key);
  };
}

/** Compiles the one operation of a document, with these values of the variables that decide its conditions. */
function compile(
  schema: GraphQLSchema,
  document: DocumentNode,
  variables: Readonly<Record<string, unknown>>,
): Compiled | undefined {
  const { document: bare, values } = compiledDocument(schema, document, variables);
  const forCompiler = compilerSchemaOf(schema);
  const compiled = compileQuery(forCompiler.schema, bare, undefined, forCompiler.options);
  return isCompiledQuery(compiled) ? { query: compiled.query, values } : undefined;
}

const compilerSchemas = new WeakMap<GraphQLSchema, CompilerSchema>();

function compilerSchemaOf(schema: GraphQLSchema): CompilerSchema {
  const known = compilerSchemas.get(schema);
  if (known) return known;
  const made = compilerSchema(schema, { findType: findReadType, isExact: isExactColumn });
  compilerSchemas.set(schema, made);
  return made;
}

const exactTypes = new Set(['Int', 'String', 'Boolean']);

/** Whether a property is a column that has values of this type as they are: other numbers may be infinite, or none. */
function isExactColumn({ name }: GraphQLObjectType, property: string, type: string): boolean {
  return exactTypes.has(type) && isModel(name) && fieldOf(name, property).type === type;
}

/** Whether a field or a variable is called like a property of every object, such as `__proto__`. */
function hasOddName(document: DocumentNode): boolean {
  let found = false;
  visit(document, {
    Name({ value }) {
      found ||= value in Object.prototype;
    },
  });
  return found;
}
