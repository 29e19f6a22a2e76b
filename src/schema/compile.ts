/**
 * Prepares operations, which are parsed and validated once and executed many times. Every execution coerces the variables once, and
 * runs once, whatever comes of it: by code that graphql-jit compiles, where that gives exactly the result of graphql-js, or else
 * by graphql-js. To do without the compiler, have `createVersions` find no version of any operation; then remove
 * `compiledDocument.ts` and `compilerSchema.ts`, but for `withCoercedVariables`. No test of a response has to change.
 */

import {
  type DocumentNode,
  type ExecutionResult,
  execute,
  type GraphQLError,
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
import { nameArguments } from './argumentErrors.ts';
import {
  type CompiledDocument,
  compiledDocument,
  findCoercedType,
  type Values,
  withCoercedVariables,
} from './compiledDocument.ts';
import { compilerSchemaOf } from './compilerSchema.ts';
import type { Context } from './context.ts';
import { conditionsKey, conditionVariablesIn } from './directives.ts';
import { schema as ownSchema } from './schema.ts';

export interface PreparedOperation {
  readonly node: OperationDefinitionNode;
  readonly type: OperationTypeNode;
  /** See `labelOf`. */
  readonly label: string;
  /** The values of the operation's variables, with their defaults; or what is wrong with those that were sent. */
  coerce(variables: Values): { readonly coerced: Values } | { readonly errors: readonly GraphQLError[] };
  /** Executes the operation with values that `coerce` has made. The result is that of graphql-js. */
  execute(coerced: Values, context: Context | undefined): Promise<ExecutionResult>;
  /** Does both. */
  run(variables: Values, context: Context): Promise<ExecutionResult>;
}

export interface PrepareOptions {
  readonly operationName?: string | undefined;
  /** By default, the gateway's own. */
  readonly schema?: GraphQLSchema;
  /** Whether errors must not suggest names that the schema has. */
  readonly hideSuggestions?: boolean;
  /** Whether it may be compiled. */
  readonly mayCompile?: boolean;
}

/** How many operations this process has executed: as compiled code, and by graphql-js. Only tests read it. */
export const executions = { compiled: 0, interpreted: 0 };

/** How many versions of one operation may be compiled. graphql-js executes any others. */
const maxVersions = 8;

/** How many errors about a document, or about the variables, a response has. */
export const maxErrors = 10;

/** The kind and the root field of a valid operation, for logs and metrics. There are few labels, and none has text of a client. */
export function labelOf({ operation, selectionSet }: OperationDefinitionNode): string {
  const [selection, ...others] = selectionSet.selections;
  const isOneField = selection?.kind === Kind.FIELD && others.length === 0;
  return `${operation} ${isOneField ? selection.name.value : 'of several fields'}`;
}

/** Prepares an operation of a valid document. Returns undefined if there is no operation of that name. */
export function prepare(
  document: DocumentNode,
  { operationName, schema = ownSchema, hideSuggestions = true, mayCompile = true }: PrepareOptions = {},
): PreparedOperation | undefined {
  const operation = getOperationAST(document, operationName);
  if (!operation) return undefined;
  const label = labelOf(operation);
  const findVersion = mayCompile ? createVersions(schema, document, operation) : () => undefined;
  const interpret = createInterpreter(document, operation, { schema, hideSuggestions });

  const coerce: PreparedOperation['coerce'] = (variables) => {
    const definitions = operation.variableDefinitions ?? [];
    const { coerced, errors } = getVariableValues(schema, definitions, variables, {
      maxErrors,
      hideSuggestions,
    });
    if (coerced) return { coerced };
    nameArguments(document, errors);
    return { errors };
  };
  let isRepeated = false;
  const executeOnce: PreparedOperation['execute'] = async (coerced, context) => {
    // Compiling takes as long as a few runs, and many operations come once.
    const compiled = isRepeated ? findVersion(coerced) : undefined;
    isRepeated = true;
    const values = compiled?.values(coerced);
    if (!compiled || !values) {
      executions.interpreted++;
      return interpret(coerced, context);
    }
    executions.compiled++;
    return compiled.query(undefined, context, values);
  };
  const execute: PreparedOperation['execute'] = (coerced, context) =>
    operationSpans.hasSubscribers
      ? operationSpans.tracePromise(async () => executeOnce(coerced, context), { label })
      : executeOnce(coerced, context);
  return {
    node: operation,
    type: operation.operation,
    label,
    coerce,
    execute,
    async run(variables, context) {
      const read = coerce(variables);
      return 'errors' in read ? read : execute(read.coerced, context);
    },
  };
}

/** Returns a function by which graphql-js executes an operation with coerced variables. */
function createInterpreter(
  document: DocumentNode,
  operation: OperationDefinitionNode,
  { schema, hideSuggestions }: Required<Pick<PrepareOptions, 'schema' | 'hideSuggestions'>>,
): PreparedOperation['execute'] {
  const withValues = withCoercedVariables(document);
  const getType = (name: string) => findCoercedType(name) ?? schema.getType(name);
  const forValues: GraphQLSchema = Object.create(schema, { getType: { value: getType } });
  return async (coerced, contextValue) => {
    const result = await execute({
      schema: forValues,
      document: withValues,
      operationName: operation.name?.value,
      variableValues: coerced,
      contextValue,
      hideSuggestions,
    });
    nameArguments(document, result.errors);
    return result;
  };
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
): (variables: Values) => Compiled | undefined {
  const own = separateOperations(document)[operation.name?.value ?? ''];
  // Mutations are rare.
  if (!own || operation.operation !== OperationTypeNode.QUERY || hasInheritedName(own))
    return () => undefined;
  const conditions = conditionVariablesIn(own);
  const versions = new Map<string, Compiled | undefined>();

  return (variables) => {
    // For a condition that is null, graphql-js makes the error.
    if (conditions.some((name) => variables[name] === null)) return undefined;
    const key = conditionsKey(conditions, variables);
    if (!versions.has(key) && versions.size < maxVersions) versions.set(key, compile(schema, own, variables));
    return versions.get(key);
  };
}

/** Compiles the only operation of a document, for these values of the variables in its conditions. */
function compile(schema: GraphQLSchema, document: DocumentNode, variables: Values): Compiled | undefined {
  const { document: bare, values } = compiledDocument(schema, document, variables);
  const forCompiler = compilerSchemaOf(schema);
  const compiled = compileQuery(forCompiler.schema, bare, undefined, forCompiler.options);
  return isCompiledQuery(compiled) ? { query: compiled.query, values } : undefined;
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
