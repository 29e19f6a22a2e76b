/** Compiles operations by graphql-jit, where the code gives exactly the result of graphql-js. */

import {
  type DocumentNode,
  type ExecutionResult,
  GraphQLError,
  type GraphQLSchema,
  OperationTypeNode,
  visit,
} from 'graphql';
import { compileQuery, isCompiledQuery } from 'graphql-jit';
import type { CompiledOperation } from '../../schema/context.ts';
import { compilerSchemaOf } from './compilerSchema.ts';

/** @returns undefined where graphql-js has to execute the operation. */
export function compile(schema: GraphQLSchema, document: DocumentNode): CompiledOperation | undefined {
  if (!compilesRightly(document)) return undefined;
  const forCompiler = compilerSchemaOf(schema);
  const compiled = compileQuery(forCompiler.schema, document, undefined, forCompiler.options);
  if (!isCompiledQuery(compiled)) return undefined;
  const { query } = compiled;
  return async (variables, context) => located(await query(undefined, context, variables), document);
}

/**
 * Whether to compile a document. Compiled code differs from graphql-js for names that every object inherits, such as `__proto__`,
 * and for arguments of the introspection. Mutations are too rare to be worth it.
 */
function compilesRightly(document: DocumentNode): boolean {
  let isRight = true;
  visit(document, {
    OperationDefinition({ operation }) {
      isRight &&= operation === OperationTypeNode.QUERY;
    },
    Name({ value }) {
      isRight &&= !(value in Object.prototype || value === '__schema' || value === '__type');
    },
  });
  return isRight;
}

/** The result of compiled code, with errors of graphql-js. Those of compiled code know a line and a column, and no document. */
function located(result: ExecutionResult, { definitions }: DocumentNode): ExecutionResult {
  const source = definitions[0]?.loc?.source;
  if (!result.errors || !source) return result;
  const errors = result.errors.map(
    ({ message, locations = [], path = null, originalError = null }) =>
      new GraphQLError(message, {
        source,
        path,
        originalError,
        positions: locations.map(({ line, column }) => startOf(line, source.body) + column - 1),
      }),
  );
  return { ...result, errors };
}

/** Where a line starts in a text. Lines are counted from 1. */
function startOf(line: number, text: string): number {
  const before = [...text.matchAll(/\r\n|[\n\r]/g)][line - 2];
  return before ? before.index + before[0].length : 0;
}
