/** Reads the requests that the fast path can take: well-formed ones without unusual parameters. */

import { getOperationAST, OperationTypeNode } from 'graphql';
import type { Viewer } from '../auth/viewer.ts';
import { isRecord, parseJson } from '../http/json.ts';
import type { Documents } from './documents.ts';
import type { PersistedOperations } from './persisted.ts';

/** A request of the GraphQL over HTTP specification. */
export interface PlainRequest {
  /** The text of the document, which the request sends or names. */
  readonly text: string;
  readonly operationName: string | undefined;
  readonly variables: Readonly<Record<string, unknown>>;
  /** Whether the response may be cached, as far as that depends on the request. */
  readonly isCacheable: boolean;
}

const parameters = new Set(['query', 'documentId', 'operationName', 'variables', 'extensions']);

/** The request in a JSON body, or undefined for anything unusual. */
export function readPlainRequest(
  body: Buffer,
  persisted: PersistedOperations,
  viewer: Viewer,
): PlainRequest | undefined {
  const given = parseJson(body.toString());
  if (!isRecord(given)) return undefined;
  if (Object.keys(given).some((name) => !parameters.has(name))) return undefined;
  const { operationName, variables, extensions } = given;
  if (operationName != null && typeof operationName !== 'string') return undefined;
  if (variables != null && !isRecord(variables)) return undefined;
  if (extensions != null && !isRecord(extensions)) return undefined;
  const text = persisted.textFor(given, viewer);
  if (typeof text !== 'string') return undefined;
  return {
    text,
    operationName: operationName ?? undefined,
    variables: variables ?? {},
    isCacheable: !persisted.registers(given),
  };
}

/**
 * Whether the target of a GET has a query whose response may be cached, as opposed to a mutation, which is rejected, or a
 * subscription, whose response has no end.
 */
export function asksForCacheable(
  target: string,
  documents: Documents,
  persisted: PersistedOperations,
  viewer: Viewer,
): boolean {
  const given = new URLSearchParams(target.split(/\?(.*)/s)[1]);
  const naming = {
    query: given.get('query'),
    documentId: given.get('documentId'),
    extensions: parseJson(given.get('extensions') ?? 'null'),
  };
  const text = persisted.textFor(naming, viewer);
  if (typeof text !== 'string' || persisted.registers(naming)) return false;
  try {
    const operation = getOperationAST(documents.read(text), given.get('operationName'));
    return operation?.operation === OperationTypeNode.QUERY;
  } catch {
    return false;
  }
}
