/**
 * The documents that clients send: parsed, held against the limits, validated, and remembered. The fast path and Yoga
 * read them here, so that both reject the same in the same words, and a document that comes again costs a look-up.
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
import type { Config } from '../config.ts';
import { nameArguments } from '../schema/argumentErrors.ts';
import { countVersions, type PreparedOperation, prepare } from '../schema/compile.ts';
import { schema as ownSchema } from '../schema/schema.ts';
import { breadthOf, complexityOf } from './complexity.ts';
import { areTooMany, isTooDeep, overLimits, tooManyValues } from './limits.ts';
import { badRequest, requestError, unreadable } from './requestErrors.ts';
import { conditionsOnRoot } from './subscriptionRoot.ts';

export interface Documents {
  /** What they are documents of. */
  readonly schema: GraphQLSchema;
  /** @throws {AggregateError} of what is wrong with the document. */
  read(text: string): DocumentNode;
  /**
   * The same for an anonymous client, who may ask for nothing but the schema. Nothing of it is remembered.
   * @returns undefined for any other document, valid or not.
   */
  readAnonymous(text: string): DocumentNode | undefined;
  /**
   * Why the operation that is named, with these variables, must not run. Undefined if it may.
   * @param isAnonymous whether an anonymous client asks, who may ask for less.
   */
  tooComplex(
    document: DocumentNode,
    operationName: string | undefined,
    variables: Readonly<Record<string, unknown>>,
    isAnonymous?: boolean,
  ): GraphQLError | undefined;
  /**
   * The operation of a valid document that was read before, ready to run. Only then: compiling takes as long as a few
   * runs, and many documents come once. Undefined for one that must not run, or is too large to compile.
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
  /** How many fields its compiled code may have in the end: those of every version of every operation. */
  readonly compilable: number;
  /** Those that were asked for again: undefined for one that cannot be prepared. */
  readonly operations: Map<OperationDefinitionNode, PreparedOperation | undefined>;
}

/** How much memory the remembered documents may take, in bytes, and what one takes: estimates, on the high side. */
const maxMemory = 64 * 1024 * 1024;
const memoryOf = { document: 2_000, character: 200, compiledField: 1_000 };

/** Compiling takes some 50 µs a field: a document with more of them is never compiled. */
const largestCompiled = 1_000;

/** How many errors of a document, or of the variables, its client is told. */
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

  /** The most that anonymous clients may ask for; known once the first of them has asked. */
  let maxAnonymous: number | undefined;

  const tooComplex: Documents['tooComplex'] = (document, operationName, variables, isAnonymous = false) => {
    if (isTooDeep(variables)) return unreadable('The variables are nested too deeply');
    if (areTooMany(variables)) return unreadable(tooManyValues);
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

/** The complexity of what tools ask to know the whole schema. */
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
  const breadth = breadthOf(schema, document);
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

/** @param hideSuggestions whether errors must not say what the schema has instead. */
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

/** By which a subgraph is asked for its schema. */
const subgraphField = '_service';

/** Whether a document asks for nothing but the schema. Fragments are only reached from the operations. */
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
