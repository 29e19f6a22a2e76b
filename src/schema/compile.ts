/**
 * Prepares operations, which are parsed and validated once and executed many times. A query is compiled if the compiled code
 * gives exactly the result of graphql-js. graphql-js executes everything else, and makes every error.
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
import { isRecordType } from '../database/models.ts';
import { fieldOf } from '../database/reader/dataModel.ts';
import { nameArguments } from './argumentErrors.ts';
import { type CompiledDocument, compiledDocument, findReadType } from './compiledDocument.ts';
import { type CompilerSchema, compilerSchema } from './compilerSchema.ts';
import type { Context } from './context.ts';
import { conditionsKey, conditionVariablesIn } from './directives.ts';
import { schema as ownSchema } from './schema.ts';

export interface PreparedOperation {
  readonly type: OperationTypeNode;
  /** See `labelOf`. */
  readonly label: string;
  /** Executes the operation with the result that graphql-js gives. A result without data was not executed, or is null as a whole. */
  run(variables: Readonly<Record<string, unknown>>, context: Context): Promise<ExecutionResult>;
}

/**
 * How many operations this process has executed: as compiled code, by graphql-js, or by both because of an error. Only tests
 * read it.
 */
export const executions = { compiled: 0, interpreted: 0, repeated: 0 };

/** How many versions of one operation may be compiled. graphql-js executes any others. */
const maxVersions = 8;

/** The kind and the root field of a valid operation, for logs and metrics. There are few labels, and none has text of a client. */
export function labelOf({ operation, selectionSet }: OperationDefinitionNode): string {
  const [selection, ...others] = selectionSet.selections;
  const isOneField = selection?.kind === Kind.FIELD && others.length === 0;
  return `${operation} ${isOneField ? selection.name.value : 'of several fields'}`;
}

/**
 * Prepares a query or mutation of a valid document.
 * @param schema by default, the gateway's own.
 * @returns undefined if there is no operation of that name, or it is a subscription.
 */
export function prepare(
  document: DocumentNode,
  operationName?: string,
  schema: GraphQLSchema = ownSchema,
): PreparedOperation | undefined {
  const operation = getOperationAST(document, operationName);
  if (!operation || operation.operation === OperationTypeNode.SUBSCRIPTION) return undefined;
  const label = labelOf(operation);
  const findVersion = createVersions(schema, document, operation);

  const run: PreparedOperation['run'] = async (variables, context) => {
    const coerced = coerceVariables(schema, operation, variables);
    const compiled = coerced && findVersion(coerced);
    const values = coerced && compiled?.values(coerced);
    if (compiled && values) {
      const result = await compiled.query(undefined, context, values);
      if (!result.errors) {
        executions.compiled++;
        return result;
      }
      // A masked error needs no message of graphql-js, and a failing database should not be asked again.
      if (result.errors.some(({ originalError: cause }) => cause && !(cause instanceof GraphQLError))) {
        executions.compiled++;
        return result;
      }
      // Compiled code has other error messages. A query writes nothing, so graphql-js can execute it again for the right ones.
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
 * The values of an operation's variables, with their defaults, or undefined if one is invalid. It stops at the first invalid
 * value, since describing all of those in a large body can take seconds.
 */
export function coerceVariables(
  schema: GraphQLSchema,
  operation: OperationDefinitionNode,
  variables: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> | undefined {
  const definitions = operation.variableDefinitions ?? [];
  return getVariableValues(schema, definitions, variables, { maxErrors: 1 }).coerced;
}

/** The highest number of versions that may be compiled of an operation of a valid document: at least one. */
export function countVersions(document: DocumentNode): number {
  const operations = Object.values(separateOperations(document));
  const counts = operations.map((operation) =>
    Math.min(2 ** conditionVariablesIn(operation).length, maxVersions),
  );
  return Math.max(1, ...counts);
}

interface Compiled extends Pick<CompiledDocument, 'values'> {
  readonly query: CompiledQuery['query'];
}

/**
 * Returns a function that finds the compiled version of an operation for given variables. graphql-jit stores the conditions of
 * `@skip` and `@include` on nodes that several fields share, so it must not get any: each combination of the conditions'
 * values makes a version of the operation without directives.
 */
function createVersions(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): (variables: Readonly<Record<string, unknown>>) => Compiled | undefined {
  const own = separateOperations(document)[operation.name?.value ?? ''];
  // A mutation cannot be executed again for the error messages of graphql-js, so it is never compiled.
  if (!own || operation.operation !== OperationTypeNode.QUERY || hasInheritedName(own))
    return () => undefined;
  const conditions = conditionVariablesIn(own);
  // A variable with a default may be used where null is invalid. Compiled code does not always detect an explicit null there.
  const withDefault = (operation.variableDefinitions ?? []).filter(({ defaultValue }) => defaultValue);
  const versions = new Map<string, Compiled | undefined>();

  return (variables) => {
    if (withDefault.some(({ variable }) => variables[variable.name.value] === null)) return undefined;
    const key = conditionsKey(conditions, variables);
    if (!versions.has(key) && versions.size < maxVersions) versions.set(key, compile(schema, own, variables));
    return versions.get(key);
  };
}

/** Compiles the only operation of a document, for these values of the variables in its conditions. */
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

/** Whether a property is a column whose values need no serialization as this type. A float may be infinite or NaN. */
function isExactColumn({ name }: GraphQLObjectType, property: string, type: string): boolean {
  return exactTypes.has(type) && isRecordType(name) && fieldOf(name, property).type === type;
}

/** Whether a field or a variable has the name of a property that every object inherits, such as `__proto__`. */
function hasInheritedName(document: DocumentNode): boolean {
  let found = false;
  visit(document, {
    Name({ value }) {
      found ||= value in Object.prototype;
    },
  });
  return found;
}
