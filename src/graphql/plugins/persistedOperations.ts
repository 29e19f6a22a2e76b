/**
 * Hands on the parameters of a request, which the handler has read, with the document that they name instead of sending it. Yoga's readers
 * do not know `documentId`, fail for variables that are not JSON, and read forms, which other sites can send. Yoga's plugins for persisted
 * operations let anybody use what anybody has registered, and know one of the ways to name a document each.
 */

import { GraphQLError } from 'graphql';
import type { GraphQLParams } from 'graphql-yoga';
import { isRecord } from '../../http/json.ts';
import type { GatewayPlugin } from '../context.ts';
import { unreadableRequest, withoutToken } from '../overHttp.ts';
import type { PersistedOperations } from '../persisted.ts';

export const usePersistedOperations = (persisted: PersistedOperations): GatewayPlugin => ({
  onRequestParse({ serverContext: { given }, setRequestParser }) {
    setRequestParser(() => {
      if (given instanceof GraphQLError) throw given;
      // `onParams` and Yoga's own plugins check them.
      return given as GraphQLParams;
    });
  },

  onParams({ params, setParams, context: { exchange, viewer } }) {
    // The next of Yoga's plugins rejects other values.
    if (!isRecord(params)) return;
    const { operationName } = params;
    if (operationName != null && typeof operationName !== 'string')
      throw unreadableRequest('operationName must be a string');
    const text = persisted.find(params, viewer);
    // Anonymous clients are not told which operations are persisted, nor that only those are run.
    if (!viewer && text !== params.query) throw withoutToken(exchange);
    if (text instanceof GraphQLError) throw text;
    if (text === params.query && operationName !== '') return;
    const { operationName: _, query: __, ...others } = params;
    // An empty name counts as none.
    setParams({
      ...others,
      ...(text !== undefined && { query: text }),
      ...(operationName && { operationName }),
    });
  },
});
