/**
 * Operations made ready to run: parsed and checked once, run many times. A query is compiled where compiled code
 * gives exactly the result of graphql-js; all else is graphql-js's, and so is every error.
 */

import {
  type ASTNode,
  type DirectiveNode,
  type DocumentNode,
  type ExecutionResult,
  execute,
  GraphQLError,
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
import type { Context } from './context.ts';
import { schema } from './schema.ts';

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
 * @returns undefined when there is none of that name, or it is a subscription.
 */
export function prepare(document: DocumentNode, operationName?: string): PreparedOperation | undefined {
  const operation = getOperationAST(document, operationName);
  if (!operation || operation.operation === OperationTypeNode.SUBSCRIPTION) return undefined;
  const label = labelOf(operation);
  const compiledFor = createVersions(document, operation);

  const run: PreparedOperation['run'] = async (variables, context) => {
    const coerced = coerceVariables(operation, variables);
    const compiled = coerced && compiledFor(coerced);
    if (compiled) {
      const result = await compiled(undefined, context, coerced);
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
    });
    nameArguments(document, result.errors);
    return result;
  };
  return {
    type: operation.operation,
    label,
    run: (variables, context) => operationSpans.tracePromise(async () => run(variables, context), { label }),
  };
}

/**
 * The values of an operation's variables, with their defaults, or undefined where some are wrong. It stops at the first
 * wrong one: to describe all that a large body can have takes seconds.
 */
export function coerceVariables(
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

type Compiled = CompiledQuery['query'];

/**
 * What runs an operation for given variables, as compiled code. graphql-jit writes the conditions of `@skip` and
 * `@include` onto nodes that several places share, so it is given none: each combination of what the conditions'
 * variables say makes a version of the operation without directives.
 */
function createVersions(
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
    const values = new Map(conditions.map((name) => [name, variables[name]]));
    const key = [...values.values()].join();
    if (!versions.has(key) && versions.size < maxVersions) versions.set(key, compile(own, values));
    return versions.get(key);
  };
}

/** Compiles the one operation of a document, with these values for the variables of its conditions. */
function compile(document: DocumentNode, values: ReadonlyMap<string, unknown>): Compiled | undefined {
  const compiled = compileQuery(schema, resolved(document, values));
  return isCompiledQuery(compiled) ? compiled.query : undefined;
}

/**
 * The document without its directives, and without what they leave out. Its variables have no defaults, since they
 * are given with these in place. Every node is a new one: graphql-jit writes into them.
 */
function resolved(document: DocumentNode, values: ReadonlyMap<string, unknown>): DocumentNode {
  return visit(document, {
    enter(node: ASTNode) {
      if (!('directives' in node) || !node.directives) return { ...node };
      if (!node.directives.every((directive) => includesNode(directive, values))) return null;
      const { directives: _, ...others } = node;
      if (!('defaultValue' in others)) return others;
      const { defaultValue: __, ...withoutDefault } = others;
      return withoutDefault;
    },
  });
}

/** Whether `@skip` or `@include` leaves its node in the document. */
function includesNode(directive: DirectiveNode, values: ReadonlyMap<string, unknown>): boolean {
  const condition = conditionOf(directive);
  const value =
    condition?.kind === Kind.VARIABLE
      ? values.get(condition.name.value)
      : condition?.kind === Kind.BOOLEAN && condition.value;
  return value === (directive.name.value === 'include');
}

/** `@skip` and `@include` are the only directives that a valid operation can have. */
function conditionOf({ arguments: given }: DirectiveNode) {
  return given?.find(({ name }) => name.value === 'if')?.value;
}

/** The names of the variables that decide conditions. */
function conditionsIn(document: DocumentNode): string[] {
  const names = new Set<string>();
  visit(document, {
    Directive(node) {
      const condition = conditionOf(node);
      if (condition?.kind === Kind.VARIABLE) names.add(condition.name.value);
    },
  });
  return [...names];
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
