/** Reads the parameters of a request for an operation (GraphQL over HTTP, section 5). */

import { isRecord, parseJson } from '../http/json.ts';
import type { Values } from '../schema/compiledDocument.ts';

/** A well-formed request. It sends the text of its document, or names it in one of two ways. */
export interface OperationRequest {
  readonly query: string | null | undefined;
  readonly documentId?: unknown;
  readonly operationName: string | undefined;
  readonly variables: Values;
  readonly extensions: Values | undefined;
}

const parameters = new Set(['query', 'documentId', 'operationName', 'variables', 'extensions']);

/** Undefined for a request that is not well-formed: Yoga says what is wrong with it. */
export function readRequest(given: unknown): OperationRequest | undefined {
  if (!isRecord(given)) return undefined;
  for (const name in given) if (given[name] !== null && !parameters.has(name)) return undefined;
  const { query, documentId, operationName, variables, extensions } = given;
  if (query != null && typeof query !== 'string') return undefined;
  if (operationName != null && typeof operationName !== 'string') return undefined;
  if (variables != null && !isRecord(variables)) return undefined;
  if (extensions != null && !isRecord(extensions)) return undefined;
  return {
    query,
    documentId,
    operationName: operationName ?? undefined,
    variables: variables ?? {},
    extensions: extensions ?? undefined,
  };
}

/** The request in the body of a POST. */
export const readBodyRequest = (body: Buffer) => readRequest(parseJson(body.toString()));

/** The request in the target of a GET. Other parameters may stand beside those of GraphQL. */
export function readTarget(target: string): OperationRequest | undefined {
  const given = new URLSearchParams(target.split(/\?(.*)/s)[1]);
  // An empty parameter counts as none.
  const textOf = (name: string) => given.get(name) || undefined;
  const jsonOf = (name: string) => {
    const text = textOf(name);
    const value = text === undefined ? undefined : parseJson(text);
    // What is no JSON is no object either.
    return value === undefined ? text : value;
  };
  return readRequest({
    query: textOf('query'),
    documentId: given.get('documentId'),
    operationName: textOf('operationName'),
    variables: jsonOf('variables'),
    extensions: jsonOf('extensions'),
  });
}
