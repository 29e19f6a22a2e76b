/** Operations made ready to run: parsed, checked and compiled once, run many times. */

import { type DocumentNode, type ExecutionResult, getOperationAST, OperationTypeNode } from 'graphql';
import { compileQuery, isCompiledQuery } from 'graphql-jit';
import type { Context } from '../context.ts';
import { schema } from './schema.ts';

export interface PreparedOperation {
  readonly type: OperationTypeNode;
  run(variables: Readonly<Record<string, unknown>>, context: Context): Promise<ExecutionResult>;
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
  return {
    type: operation.operation,
    run: async (variables, context) => compiled.query(undefined, context, variables),
  };
}
