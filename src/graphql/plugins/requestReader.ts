/** Reads the parameters of a GET. Yoga's reader does not know `documentId`, and fails for variables that are not JSON. */

import type { GraphQLParams } from 'graphql-yoga';
import { parseJson } from '../../http/json.ts';
import type { GatewayPlugin } from '../context.ts';
import { unreadableRequest } from '../overHttp.ts';

export const useRequestReader = (): GatewayPlugin => ({
  onRequestParse({ request, url, setRequestParser }) {
    if (request.method === 'GET') setRequestParser(() => readParams(url.searchParams));
  },
});

/**
 * The parameters of an operation. Others may stand beside them. An empty one counts as none.
 * @throws {GraphQLError} if one of them is not JSON.
 */
export function readParams(given: URLSearchParams): GraphQLParams {
  const textOf = (name: string) => given.get(name) || undefined;
  const [variables, extensions] = ['variables', 'extensions'].map((name) =>
    parseJson(textOf(name) ?? 'null'),
  );
  if (variables === undefined || extensions === undefined)
    throw unreadableRequest('variables and extensions must be JSON');
  const documentId = given.get('documentId');
  const [query, operationName] = ['query', 'operationName'].map(textOf);
  // The next plugins check their types.
  return { query, operationName, variables, extensions, documentId } as GraphQLParams;
}
