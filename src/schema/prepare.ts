/** Operations made ready to run: parsed, checked and compiled once, run many times. */

import {
  type DocumentNode,
  type ExecutionResult,
  getOperationAST,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
} from 'graphql';
import { compileQuery, isCompiledQuery } from 'graphql-jit';
import type { Context } from '../context.ts';
import { operationSpans } from '../spans.ts';
import { schema } from './schema.ts';

export interface PreparedOperation {
  readonly type: OperationTypeNode;
  /** See `labelOf`. */
  readonly label: string;
  run(variables: Readonly<Record<string, unknown>>, context: Context): Promise<ExecutionResult>;
}

/** The kind and the root field of a valid operation, as the log says them: one of few. */
export function labelOf({ operation, selectionSet }: OperationDefinitionNode): string {
  const [selection, ...others] = selectionSet.selections;
  const isOneField = selection?.kind === Kind.FIELD && others.length === 0;
  return `${operation} ${isOneField ? selection.name.value : 'of several fields'}`;
}

/**
 * Compiles a query or mutation of a valid document.
 * @returns undefined when there is none of that name, it is a subscription, or it cannot be compiled.
 */
export function prepare(document: DocumentNode, operationName?: string): PreparedOperation | undefined {
  const operation = getOperationAST(document, operationName);
  if (!operation || operation.operation === OperationTypeNode.SUBSCRIPTION) return undefined;
  const compiled = compileQuery(schema, document, operationName);
  if (!isCompiledQuery(compiled)) return undefined;
  const label = labelOf(operation);
  return {
    type: operation.operation,
    label,
    run: (variables, context) =>
      operationSpans.tracePromise(async () => compiled.query(undefined, context, variables), { label }),
  };
}
