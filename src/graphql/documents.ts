/**
 * Parses the documents that clients send, checks them against the limits, validates and caches them. Both the fast path and
 * Yoga read documents here, so that they reject the same ones with the same messages.
 */

import {
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  getIntrospectionQuery,
  getOperationAST,
  Kind,
  NoSchemaIntrospectionCustomRule,
  type OperationDefinitionNode,
  parse,
  specifiedRules,
  validate,
} from 'graphql';
import { LRUCache } from 'lru-cache';
import type { Config } from '../config/config.ts';
import { nameArguments } from '../schema/argumentErrors.ts';
import { countVersions, type PreparedOperation, prepare } from '../schema/compile.ts';
import { schema as ownSchema } from '../schema/schema.ts';
import { complexityOf, countSelectedFields } from './complexity.ts';
import { hasTooManyValues, isTooDeep, overLimits, tooManyValues } from './limits.ts';
import { badRequest, requestError, unreadableRequest } from './requestErrors.ts';
import { conditionsOnRoot } from './subscriptionRoot.ts';

export interface Documents {
  /** The schema against which documents are validated. */
  readonly schema: GraphQLSchema;
  /** Reads a document. @throws {AggregateError} with the errors of a document that cannot be run. */
  read(text: string): DocumentNode;
  /**
   * The same for an anonymous client, which may ask for nothing but the schema. The document is not cached.
   * @returns undefined for any other document, valid or not.
   */
  readAnonymous(text: string): DocumentNode | undefined;
  /**
   * The error of an operation that must not run with these variables; undefined if it may.
   * @param isAnonymous whether the client is anonymous, for which the limit is lower.
   */
  tooComplex(
    document: DocumentNode,
    operationName: string | undefined,
    variables: Readonly<Record<string, unknown>>,
    isAnonymous?: boolean,
  ): GraphQLError | undefined;
  /**
   * The prepared operation of a document that was read before, and is valid. Other documents are not compiled: that takes
   * as long as a few runs, and many documents come once. Undefined also for an operation that must not run, or is too large
   * to compile.
   */
  prepared(
    text: string,
    operationName: string | undefined,
    variables: Readonly<Record<string, unknown>>,
  ): PreparedOperation | undefined;
}

interface Known {
  readonly document?: DocumentNode;
  readonly errors: readonly GraphQLError[];
  /** How many fields its operations select; 0 for a document that must not run. */
  readonly breadth: number;
  /** How many fields the compiled code may have, once every version of every operation is compiled. */
  readonly compilable: number;
  /** The prepared operations; undefined for one that cannot be prepared. */
  readonly operations: Map<OperationDefinitionNode, PreparedOperation | undefined>;
}

/** How much memory the cached documents may take, in bytes. What one takes is estimated, on the high side. */
const maxMemory = 64 * 1024 * 1024;
const memoryOf = { document: 2_000, character: 200, compiledField: 1_000 };

/** A document with more fields is never compiled: that takes some 50 µs a field. */
const largestCompiled = 1_000;

/** How many errors about a document, or about the variables, a response has. */
export const maxErrors = 10;

/**
 * @param config the limits, and whether the schema may be read.
 * @param schema if it is not the gateway's own.
 */
export function createDocuments(config: Config, schema: GraphQLSchema = ownSchema): Documents {
  const known = new LRUCache<string, Known>({
    maxSize: maxMemory,
    sizeCalculation: ({ compilable }, text) =>
      memoryOf.document + memoryOf.character * text.length + memoryOf.compiledField * compilable,
  });
  const { MAX_COMPLEXITY } = config;
  const mayIntrospect = config.INTROSPECTION === 'on';

  /** The highest complexity for anonymous clients. Computed with their first request. */
  let maxAnonymous: number | undefined;

  const tooComplex: Documents['tooComplex'] = (document, operationName, variables, isAnonymous = false) => {
    if (isTooDeep(variables)) return unreadableRequest('The variables are nested too deeply');
    if (hasTooManyValues(variables)) return unreadableRequest(tooManyValues);
    const operation = getOperationAST(document, operationName);
    const complexity = operation ? complexityOf(schema, document, operation, variables) : 0;
    if (isAnonymous) maxAnonymous ??= Math.min(MAX_COMPLEXITY, 2 * complexityOfTools(schema));
    const most = isAnonymous && maxAnonymous !== undefined ? maxAnonymous : MAX_COMPLEXITY;
    return complexity > most
      ? requestError(`The operation has a complexity of ${complexity}; at most ${most} is allowed`)
      : undefined;
  };

  return {
    schema,
    tooComplex,

    read(text) {
      let found = known.get(text);
      if (!found) {
        found = check(schema, text, config);
        known.set(text, found);
      }
      return runnable(found);
    },

    readAnonymous(text) {
      const document = mayIntrospect ? parsed(text, config) : undefined;
      if (!document || document instanceof GraphQLError || !isIntrospection(schema, document))
        return undefined;
      return runnable({ document, errors: errorsIn(schema, document, config, true) });
    },

    prepared(text, operationName, variables) {
      const found = known.get(text);
      if (!found?.document || found.breadth === 0 || found.breadth > largestCompiled) return undefined;
      const { document, operations } = found;
      const operation = getOperationAST(document, operationName);
      if (!operation || tooComplex(document, operationName, variables)) return undefined;
      if (!operations.has(operation)) operations.set(operation, prepare(document, operationName, schema));
      return operations.get(operation);
    },
  };
}

/** The complexity of the introspection query by which tools read the whole schema. */
function complexityOfTools(schema: GraphQLSchema): number {
  const document = parse(
    getIntrospectionQuery({
      specifiedByUrl: true,
      directiveIsRepeatable: true,
      schemaDescription: true,
      inputValueDeprecation: true,
      oneOf: true,
    }),
  );
  const operation = getOperationAST(document);
  return operation ? complexityOf(schema, document, operation, {}) : 0;
}

function check(schema: GraphQLSchema, text: string, config: Config): Known {
  const document = parsed(text, config);
  const operations: Known['operations'] = new Map();
  if (document instanceof GraphQLError) return { errors: [document], breadth: 0, compilable: 0, operations };
  const errors = errorsIn(schema, document, config, config.INTROSPECTION !== 'on');
  if (errors.length > 0) return { document, errors, breadth: 0, compilable: 0, operations };
  const breadth = countSelectedFields(schema, document);
  const compilable = breadth <= largestCompiled ? breadth * countVersions(document) : 0;
  return { document, errors, breadth, compilable, operations };
}

function parsed(text: string, { MAX_TOKENS }: Config): DocumentNode | GraphQLError {
  try {
    return parse(text, { maxTokens: MAX_TOKENS });
  } catch (error) {
    // The parser calls itself for each level, and runs out of stack where MAX_TOKENS allows thousands of them.
    if (!(error instanceof GraphQLError))
      return requestError('The operation is nested too deeply to be read');
    return error.message.endsWith('Parsing aborted.')
      ? requestError(`The operation has more than ${MAX_TOKENS} tokens; at most ${MAX_TOKENS} are allowed`)
      : error;
  }
}

/** @param hideSuggestions whether errors must not suggest names that the schema has. */
function errorsIn(
  schema: GraphQLSchema,
  document: DocumentNode,
  config: Config,
  hideSuggestions: boolean,
): readonly GraphQLError[] {
  const rules =
    config.INTROSPECTION === 'on' ? specifiedRules : [...specifiedRules, NoSchemaIntrospectionCustomRule];
  try {
    const over = overLimits(document, config);
    if (over.length > 0) return over;
    const conditions = conditionsOnRoot(document);
    if (conditions.length > 0) return conditions;
    const errors = validate(schema, document, rules, { maxErrors, hideSuggestions });
    nameArguments(document, errors);
    // Nobody reads the stacks. V8 makes the text of a stack when it is read, and until then holds everything that the stack refers to.
    for (const error of errors) error.stack = '';
    return errors.map((error) =>
      // graphql-js compares all pairs of fields of the same name, and gives up with this when there are too many.
      error.message === 'Validation aborted.'
        ? requestError('The operation repeats its fields too often; each is needed only once')
        : error,
    );
  } catch (error) {
    // A rule calls itself for each pair of fragments in a circle, and runs out of stack in a long one.
    if (!(error instanceof RangeError)) throw error;
    return [requestError('The operation is nested too deeply to be checked')];
  }
}

function runnable({ document, errors }: Pick<Known, 'document' | 'errors'>): DocumentNode {
  if (document && errors.length === 0) return document;
  for (const error of errors) Object.assign(error.extensions, { http: badRequest });
  throw new AggregateError(errors, 'the document cannot be run');
}

/** The field by which a federation gateway reads the schema of a subgraph. */
const subgraphField = '_service';

/**
 * Whether a document asks for nothing but the schema. Operations with a fragment at their root count as asking for
 * more.
 */
function isIntrospection(schema: GraphQLSchema, document: DocumentNode): boolean {
  const isOfSubgraph = schema.getQueryType()?.getFields()[subgraphField] !== undefined;
  return document.definitions.every(
    (definition) =>
      definition.kind === Kind.FRAGMENT_DEFINITION ||
      (definition.kind === Kind.OPERATION_DEFINITION &&
        definition.selectionSet.selections.every(
          (selection) =>
            selection.kind === Kind.FIELD &&
            (selection.name.value.startsWith('__') ||
              (isOfSubgraph && selection.name.value === subgraphField)),
        )),
  );
}
