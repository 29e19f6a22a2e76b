/**
 * Gives Yoga the cached document of a request, and the errors of its validation. Yoga's own cache has no bound in bytes, and no
 * limits on what is parsed; GraphQL Armor words its limits as syntax errors (docs/decisions/own-limits.md).
 */

import type { Exchange } from '../../http/exchange.ts';
import type { PreparedOperation } from '../../schema/operation.ts';
import type { GatewayPlugin } from '../context.ts';
import { type CheckedDocument, type Documents, noOperation } from '../documents.ts';
import { requestError, withoutToken } from '../overHttp.ts';

export const useDocuments = (documents: Documents): GatewayPlugin => ({
  onParse({ params, context, setParsedDocument }) {
    const { exchange, viewer, progress } = context;
    const text = String(params.source);
    const document = viewer ? documents.read(text) : documents.readAnonymous(text);
    if (!document) throw withoutToken(exchange);
    progress.document = document;
    if (!('errors' in document))
      progress.operation = operationOf(document, context.params.operationName, exchange);
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
  name: string | undefined,
  exchange: Exchange,
): PreparedOperation {
  const operation = document.operation(name);
  if (!operation) throw requestError(noOperation(document.document, name));
  exchange.operation = operation.label;
  return operation;
}
