/**
 * Gives Yoga the cached document of a request, and the errors of its validation. Yoga's own cache has no bound in bytes, and no
 * limits on what is parsed; GraphQL Armor words its limits as syntax errors (docs/decisions/own-limits.md).
 */

import { OperationTypeNode } from 'graphql';
import type { PreparedOperation } from '../../schema/operation.ts';
import type { GatewayContext, GatewayPlugin } from '../context.ts';
import { type CheckedDocument, type Documents, noOperation } from '../documents.ts';
import { requestError, withoutToken } from '../overHttp.ts';

export const useDocuments = (documents: Documents): GatewayPlugin => ({
  onParse({ params, context, setParsedDocument }) {
    const { exchange, viewer, progress } = context;
    const text = String(params.source);
    const document = viewer ? documents.read(text) : documents.readAnonymous(text);
    if (!document) throw withoutToken(exchange);
    progress.document = document;
    if (!('errors' in document)) progress.operation = operationOf(document, context);
    else if (!document.document) throw document.errors[0];
    setParsedDocument(document.document);
  },

  onValidate({ context: { progress }, setResult }) {
    const { document } = progress;
    if (document) setResult('errors' in document ? document.errors : []);
  },
});

function operationOf(
  document: CheckedDocument,
  { exchange, params, expected = OperationTypeNode.QUERY }: GatewayContext,
): PreparedOperation {
  // An empty name counts as none.
  const name = params.operationName || undefined;
  const operation = document.operation(name);
  if (!operation) throw requestError(noOperation(document.document, name));
  // The pipeline shares and caches results by the type of the operation that was sent.
  if (operation.type !== expected) throw new Error(`a plugin has made a ${operation.type} of a ${expected}`);
  exchange.operation = operation.label;
  return operation;
}
