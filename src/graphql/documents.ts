/**
 * The documents of clients. Each is parsed, checked against the limits and validated once, as long as it is cached; so are its
 * operations prepared (`schema/operation.ts`). Those of a user are read one after the other.
 */

import {
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  Kind,
  NoSchemaIntrospectionCustomRule,
  OperationTypeNode,
  parse,
  type SelectionNode,
  specifiedRules,
  type ValidationRule,
  validate,
} from 'graphql';
import { LRUCache } from 'lru-cache';
import type { Recheck, Viewer } from '../auth/viewer.ts';
import type { Config } from '../config/config.ts';
import { createUserQueue } from '../database/turns.ts';
import { clientErrorOf } from '../errors.ts';
import type { Exchange } from '../http/exchange.ts';
import { isRecord } from '../http/json.ts';
import {
  countVariants,
  maxErrors,
  nameArguments,
  type PreparedOperation,
  prepare,
} from '../schema/operation.ts';
import { schema as ownSchema } from '../schema/schema.ts';
import { countSelectedFields, overLimits } from './limits.ts';
import { badRequest, requestError } from './overHttp.ts';
import type { PersistedOperations } from './persisted.ts';

export type Documents = ReturnType<typeof createDocuments>;

/** A document that may be run. */
export interface CheckedDocument {
  readonly text: string;
  readonly document: DocumentNode;
  /** Prepares the operation of that name, or without a name the only one. Undefined if there is none. */
  operation(name: string | undefined): PreparedOperation | undefined;
  /** How many fields of compiled code it may take. */
  readonly compilable: number;
}

/** The errors of a document that cannot be run. */
export interface Rejected {
  readonly errors: readonly GraphQLError[];
}

/** How much memory the cached documents may take, in bytes. The memory of each is estimated, rather too high. */
const maxMemory = 64 * 1024 * 1024;
const memoryOf = { document: 2_000, character: 200, compiledField: 1_000 };

/** A document with more fields is never compiled: that takes some 50 µs a field. */
const largestCompiled = 1_000;

/**
 * @param config the limits, and whether the schema may be read.
 * @param schema by default the gateway's own.
 * @param mayCompile whether operations may be compiled. Compiled code does not call all resolvers.
 */
export function createDocuments(config: Config, schema: GraphQLSchema = ownSchema, mayCompile = true) {
  const known = new LRUCache<string, CheckedDocument | Rejected>({
    maxSize: maxMemory,
    sizeCalculation: (found, text) =>
      memoryOf.document +
      memoryOf.character * text.length +
      memoryOf.compiledField * ('errors' in found ? 0 : found.compilable),
  });
  const mayIntrospect = config.INTROSPECTION === 'on';

  return {
    /** The schema against which documents are validated. */
    schema,

    /** Whether the document is cached. To read any other may take tens of milliseconds. */
    has: (text: string) => known.has(text),

    /** The document, or the errors of one that cannot be run. */
    read(text: string): CheckedDocument | Rejected {
      const found = known.get(text);
      if (found) return found;
      const document = parsed(text, config);
      const read =
        document instanceof GraphQLError
          ? rejected([document])
          : check(schema, text, document, { config, mayCompile, hideSuggestions: !mayIntrospect });
      known.set(text, read);
      return read;
    },

    /**
     * The same for an anonymous client, which may ask for nothing but the schema. The document is not cached.
     * @returns undefined for any other document, valid or not.
     */
    readAnonymous(text: string): CheckedDocument | Rejected | undefined {
      const document = mayIntrospect ? parsed(text, config) : undefined;
      return document instanceof GraphQLError || !document || !isIntrospection(schema, document)
        ? undefined
        : check(schema, text, document, { config, mayCompile, hideSuggestions: true });
    },
  };
}

/** What a request of a viewer sends or names: a document, or the error of one that names it wrongly; undefined if it does neither. */
export type Named = string | GraphQLError | undefined;

/**
 * Makes turns for reading documents: to parse and validate one takes tens of milliseconds at worst, in which nothing else runs. The
 * documents of a user are read one after the other, each followed by a rest as long, so they delay no other user for long.
 */
export function createReadInTurn(
  documents: Documents,
  persisted: Pick<PersistedOperations, 'find'>,
  recheck: Recheck,
) {
  const inTurn = createUserQueue();
  /**
   * Does work that begins by reading the document of a request: at once if the document is cached, or else when it is the user's turn.
   * The viewer is null for an anonymous client, or if the token has ended meanwhile.
   */
  return <Result>(
    params: unknown,
    { exchange, viewer }: { readonly exchange: Exchange; readonly viewer: Viewer | null },
    work: (viewer: Viewer | null, named: Named) => Result,
  ): Result | Promise<Result> => {
    const named = viewer && isRecord(params) ? persisted.find(params, viewer) : undefined;
    if (!viewer || typeof named !== 'string' || documents.has(named)) return work(viewer, named);
    // For a client that has left, nothing is read.
    return inTurn(viewer.id, async () =>
      work(exchange.isOver ? null : await recheck(exchange, viewer), named),
    );
  };
}

interface CheckOptions {
  readonly config: Config;
  /** Whether errors must not suggest names that the schema has. */
  readonly hideSuggestions: boolean;
  readonly mayCompile: boolean;
}

function check(
  schema: GraphQLSchema,
  text: string,
  document: DocumentNode,
  options: CheckOptions,
): CheckedDocument | Rejected {
  const { hideSuggestions } = options;
  const errors = errorsIn(schema, document, options);
  if (errors.length > 0) return rejected(errors);
  const breadth = countSelectedFields(schema, document);
  const mayCompile = options.mayCompile && breadth <= largestCompiled;
  const operations = new Map<string | undefined, PreparedOperation>();
  return {
    text,
    document,
    compilable: mayCompile ? breadth * countVariants(document) : 0,
    operation(operationName) {
      const found =
        operations.get(operationName) ??
        prepare(document, { operationName, schema, hideSuggestions, mayCompile });
      if (found) operations.set(operationName, found);
      return found;
    },
  };
}

/** Says why a valid document, which has operations, has none of that name. */
export function noOperation({ definitions }: DocumentNode, name: string | undefined): string {
  const names = definitions.flatMap((each) =>
    each.kind === Kind.OPERATION_DEFINITION ? [each.name?.value ?? 'one without a name'] : [],
  );
  const has = `the document has ${names.join(', ')}`;
  return name ? `There is no operation ${name}: ${has}` : `operationName has to name the operation: ${has}`;
}

/** The errors of graphql-js as clients get them, each with the status of a bad request. */
export const rejected = (errors: readonly GraphQLError[]): Rejected => ({
  errors: errors.map((error) => {
    error.extensions.http = { ...badRequest };
    return clientErrorOf(error);
  }),
});

function parsed(text: string, { MAX_TOKENS }: Config): DocumentNode | GraphQLError {
  try {
    return parse(text, { maxTokens: MAX_TOKENS });
  } catch (error) {
    // The parser calls itself for each level, and runs out of stack where MAX_TOKENS allows thousands of them.
    return error instanceof GraphQLError
      ? error
      : requestError('The operation is nested too deeply to be read');
  }
}

function errorsIn(
  schema: GraphQLSchema,
  document: DocumentNode,
  { config, hideSuggestions }: Pick<CheckOptions, 'config' | 'hideSuggestions'>,
): readonly GraphQLError[] {
  const rules =
    config.INTROSPECTION === 'on' ? specifiedRules : [...specifiedRules, NoSchemaIntrospectionCustomRule];
  try {
    const over = overLimits(document, config);
    if (over.length > 0) return over;
    const conditions = validate(schema, document, [noConditionOnRoot], { maxErrors: 1 });
    if (conditions.length > 0) return conditions.slice(0, 1);
    const errors = validate(schema, document, rules, { maxErrors, hideSuggestions });
    nameArguments(document, errors);
    // The stacks are never read. V8 formats a stack when it is read, and until then keeps everything alive to which the stack refers.
    for (const error of errors) error.stack = '';
    // graphql-js compares all pairs of fields of the same name, and gives up when there are too many. The error has no place in the
    // document, and neither has the one about too many errors.
    return errors.map((error) =>
      error.nodes || errors.length > maxErrors
        ? error
        : requestError('The operation repeats its fields too often; each is needed only once'),
    );
  } catch (error) {
    // A rule calls itself for each pair of fragments in a circle, and runs out of stack in a long one.
    if (!(error instanceof RangeError)) throw error;
    return [requestError('The operation is nested too deeply to be checked')];
  }
}

/**
 * The root field of a subscription may have no `@skip` or `@include`, nor may a fragment around it (GraphQL, September 2025,
 * section 5.2.4.1). graphql-js 16 does not check that, and one of its rules throws if the condition is a variable.
 */
const noConditionOnRoot: ValidationRule = (context) => {
  const check = (node: SelectionNode) => {
    if (context.getParentType() !== context.getSchema().getSubscriptionType()) return;
    if (node.directives?.some(({ name }) => name.value === 'skip' || name.value === 'include'))
      context.reportError(
        new GraphQLError('A subscription cannot have @skip or @include on its field', { nodes: node }),
      );
  };
  return { Field: check, InlineFragment: check, FragmentSpread: check };
};

/**
 * Whether a document asks for nothing but the schema. An operation with a fragment at its root counts as asking for more. Fields of an
 * extension that describe the schema say so.
 */
function isIntrospection(schema: GraphQLSchema, document: DocumentNode): boolean {
  const fields = schema.getQueryType()?.getFields() ?? {};
  const isOfSchema = (selection: SelectionNode) =>
    selection.kind === Kind.FIELD &&
    (selection.name.value.startsWith('__') ||
      fields[selection.name.value]?.extensions.describesSchema === true);
  return document.definitions.every(
    (definition) =>
      definition.kind === Kind.FRAGMENT_DEFINITION ||
      (definition.kind === Kind.OPERATION_DEFINITION &&
        definition.operation === OperationTypeNode.QUERY &&
        definition.selectionSet.selections.every(isOfSchema)),
  );
}
