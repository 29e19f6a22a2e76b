/** Reads the parameters of a request for an operation (GraphQL over HTTP, section 5). They are passed on as they were read. */

import type { GraphQLError } from 'graphql';
import { isRecord, parseJson } from '../http/json.ts';
import type { Values } from '../schema/compiledDocument.ts';
import { unreadableRequest } from './requestFailure.ts';

/** A well-formed request. It sends the text of its document, or names it in one of two ways. */
export interface OperationRequest {
  readonly query: string | null | undefined;
  readonly documentId?: unknown;
  readonly operationName: string | undefined;
  readonly variables: Values;
  readonly extensions: Values | undefined;
}

const parameters = new Set(['query', 'documentId', 'operationName', 'variables', 'extensions']);

/** A request, or what is wrong with one that is not well-formed. */
export type ReadRequest = OperationRequest | GraphQLError;

export function readRequest(given: unknown): ReadRequest {
  if (!isRecord(given)) return unreadableRequest('A request must be an object with a query, in JSON');
  for (const name in given)
    if (given[name] !== null && !parameters.has(name))
      return unreadableRequest(`There is no parameter ${JSON.stringify(name.slice(0, 100))}`);
  const { query, documentId, operationName, variables, extensions } = given;
  if (query != null && typeof query !== 'string') return unreadableRequest('query must be a string');
  if (operationName != null && typeof operationName !== 'string')
    return unreadableRequest('operationName must be a string');
  if (variables != null && !isRecord(variables)) return unreadableRequest('variables must be an object');
  if (extensions != null && !isRecord(extensions)) return unreadableRequest('extensions must be an object');
  return {
    query,
    documentId,
    operationName: operationName ?? undefined,
    variables: variables ?? {},
    extensions: extensions ?? undefined,
  };
}

/** The request in the target of a GET. Other parameters may stand beside those of GraphQL. */
export function readTarget(target: string): ReadRequest {
  const given = new URLSearchParams(target.split(/\?(.*)/s)[1]);
  // An empty parameter counts as none.
  const textOf = (name: string) => given.get(name) || undefined;
  const [variables, extensions] = ['variables', 'extensions'].map((name) =>
    parseJson(textOf(name) ?? 'null'),
  );
  if (variables === undefined || extensions === undefined)
    return unreadableRequest('variables and extensions must be JSON');
  return readRequest({
    query: textOf('query'),
    documentId: given.get('documentId'),
    operationName: textOf('operationName'),
    variables,
    extensions,
  });
}

/** How many levels the values of variables may have: many more than a filter may. */
const deepestValue = 64;

/** Whether values have too many levels. Functions that read them call themselves for each level, and run out of stack. */
export function isTooDeep(value: unknown, depth = 0): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return depth > deepestValue || Object.values(value).some((each) => isTooDeep(each, depth + 1));
}

/** The same for a whole request, in which the values of variables are one level further down. */
export const isRequestTooDeep = (request: unknown): boolean => isTooDeep(request, -1);

/** How many values variables may have. Reading one takes up to 10 µs. */
const mostValues = 5_000;
export const tooManyValues = `The variables have more than ${mostValues} values; at most ${mostValues} are allowed`;

/** Whether there are more than `most` values. Those within lists and objects count as well. */
export function hasTooManyValues(values: unknown, most = mostValues): boolean {
  const open = [values];
  let count = 0;
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value !== 'object' || value === null) continue;
    const within = Object.values(value);
    count += within.length;
    if (count > most) return true;
    for (const each of within) open.push(each);
  }
  return false;
}

/**
 * The JSON text that names a value which was read from JSON, and names no other. Undefined where there is none: of values that are
 * too deep to be written, and of numbers such as 1e999, which are read as `Infinity` and written as null.
 */
export function exactText(value: unknown): string | undefined {
  if (isRequestTooDeep(value)) return undefined;
  let isExact = true;
  const text = JSON.stringify(value, (_name, each) => {
    if (each === Number.POSITIVE_INFINITY || each === Number.NEGATIVE_INFINITY) isExact = false;
    return each;
  });
  return isExact ? text : undefined;
}
