/** The express lane: plain requests for operations that are compiled already, or worth compiling. */

import { type DocumentNode, getOperationAST, OperationTypeNode, parse, validate } from 'graphql';
import { LRUCache } from 'lru-cache';
import { type PreparedOperation, prepare } from '../schema/prepare.ts';
import { schema } from '../schema/schema.ts';

/** A request of the GraphQL over HTTP specification, with nothing odd about it. */
export interface PlainRequest {
  readonly query: string;
  readonly operationName: string | undefined;
  readonly variables: Readonly<Record<string, unknown>>;
}

const maxOperations = 1_000;

/** What is known of a document that was asked for before. */
interface Seen {
  /** Undefined until it is asked for again, null if it is not valid. */
  document?: DocumentNode | null;
  /** By name, once they are compiled. */
  readonly operations: Map<string | undefined, PreparedOperation | undefined>;
}

const documents = new LRUCache<string, Seen>({ max: maxOperations });

/** The request in a JSON body, or undefined for one that is odd in any way. */
export function readPlainRequest(body: Buffer): PlainRequest | undefined {
  let given: unknown;
  try {
    given = JSON.parse(body.toString());
  } catch {
    return undefined;
  }
  if (!isRecord(given) || Array.isArray(given)) return undefined;
  const { query, operationName, variables } = given;
  if (typeof query !== 'string') return undefined;
  if (operationName != null && typeof operationName !== 'string') return undefined;
  if (variables != null && (!isRecord(variables) || Array.isArray(variables))) return undefined;
  return { query, operationName: operationName ?? undefined, variables: variables ?? {} };
}

/** Whether the target of a GET asks for a query, which has one answer: a subscription has no end. */
export function asksForQuery(target: string): boolean {
  const parameters = new URLSearchParams(target.split(/\?(.*)/s)[1]);
  try {
    const document = parse(parameters.get('query') ?? '');
    const operation = getOperationAST(document, parameters.get('operationName'));
    return operation?.operation === OperationTypeNode.QUERY;
  } catch {
    return false;
  }
}

/**
 * The compiled operation that the request names. Undefined for one that is not valid, and for one that is seen
 * for the first time: compiling costs as much as running a few times, and much is asked only once.
 */
export function findOperation({ query, operationName }: PlainRequest): PreparedOperation | undefined {
  const seen = documents.get(query);
  if (!seen) {
    documents.set(query, { operations: new Map() });
    return undefined;
  }
  if (seen.document === undefined) seen.document = parseValid(query);
  if (!seen.document) return undefined;
  if (!seen.operations.has(operationName)) {
    seen.operations.set(operationName, prepare(seen.document, operationName));
  }
  return seen.operations.get(operationName);
}

function parseValid(query: string): DocumentNode | null {
  try {
    const document = parse(query);
    return validate(schema, document).length === 0 ? document : null;
  } catch {
    return null;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
