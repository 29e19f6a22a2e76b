/**
 * The one way to execute operations: those of POST and GET, of batches, WebSockets, subscriptions and tools. A document is parsed,
 * checked against the limits and validated once, as long as it is cached. The variables are coerced once, for the limits and
 * for the execution. The operation is executed exactly once, with or without success. The error messages are the same for all
 * transports. `complexity.ts` counts the fields that the response may have.
 *
 * May be replaced by `parse`, `validate` and `execute` of graphql-js, in that order, without the limits, the caches and the
 * speed.
 */

import {
  type DocumentNode,
  type ExecutionResult,
  GraphQLError,
  type GraphQLSchema,
  Kind,
  NoSchemaIntrospectionCustomRule,
  OperationTypeNode,
  parse,
  type SelectionNode,
  type SelectionSetNode,
  specifiedRules,
  type ValidationRule,
  validate,
  visit,
} from 'graphql';
import { LRUCache } from 'lru-cache';
import { allows } from '../auth/scopes.ts';
import { problemOf, type Viewer } from '../auth/viewer.ts';
import type { Config } from '../config/config.ts';
import { beyondScope, unauthenticated } from '../errors.ts';
import {
  countVariants,
  fragmentsOf,
  maxErrors,
  nameArguments,
  type PreparedOperation,
  prepare,
} from '../schema/compile.ts';
import type { Context } from '../schema/context.ts';
import { schema as ownSchema } from '../schema/schema.ts';
import { complexityOf, complexityOfTools, countSelectedFields } from './complexity.ts';
import {
  badRequest,
  hasTooManyValues,
  isTooDeep,
  type OperationRequest,
  type ReadRequest,
  requestError,
  tooManyValues,
  unreadableRequest,
} from './overHttp.ts';
import type { PersistedOperations } from './persisted.ts';

/** The client of an operation. */
export interface Client {
  /** Null for an anonymous client, which may ask for nothing but the schema. */
  readonly viewer: Viewer | null;
  /** The header `Authorization`: it tells why there is no viewer. */
  readonly authorization: string | undefined;
  /** Whether the token there has expired. */
  readonly hasExpiredToken: boolean;
  /** Whether the request may write, unlike a GET. */
  readonly mayWrite: boolean;
}

/** An operation with its variables, ready to be executed. */
export interface Operation extends Pick<PreparedOperation, 'type' | 'label' | 'readsTokens'> {
  readonly request: OperationRequest;
  readonly complexity: number;
  /** The text of its document. */
  readonly text: string;
  /** Executes it. Errors are in the result. */
  execute(context: Context | undefined): Promise<ExecutionResult>;
}

export type Execution = ReturnType<typeof createExecution>;

export function createExecution(
  { MAX_COMPLEXITY }: Pick<Config, 'MAX_COMPLEXITY'>,
  documents: Documents,
  persisted: PersistedOperations,
) {
  const { schema } = documents;
  /** The highest complexity for anonymous clients. Computed with their first request. */
  let maxAnonymous: number | undefined;

  function maxFor(viewer: Viewer | null): number {
    if (viewer) return MAX_COMPLEXITY;
    maxAnonymous ??= Math.min(MAX_COMPLEXITY, 2 * complexityOfTools(schema));
    return maxAnonymous;
  }

  function findDocument(request: OperationRequest, client: Client): CheckedDocument | Rejected {
    const { viewer } = client;
    const text = persisted.find(request, viewer);
    // Anonymous clients are not told which operations are persisted, nor that only those are run.
    if (!viewer && text !== request.query) return withoutToken(client);
    if (text instanceof GraphQLError) return { errors: [text] };
    if (text === undefined) return { errors: [unreadableRequest('Must provide query string.')] };
    if (!viewer) return documents.readAnonymous(text) ?? withoutToken(client);
    const document = documents.read(text);
    if (!('errors' in document)) persisted.register(request, viewer);
    return document;
  }

  return {
    /** Finds the operation of a request, and checks that it may be executed. */
    prepare(request: ReadRequest, client: Client): Operation | Rejected {
      if (request instanceof GraphQLError) return { errors: [request] };
      const found = findDocument(request, client);
      if ('errors' in found) return found;
      const operation = found.operation(request.operationName);
      if (!operation) return { errors: [requestError(noOperation(found.document, request.operationName))] };
      const { type, label, node, coerce, execute, readsTokens } = operation;
      if (type === OperationTypeNode.MUTATION && !client.mayWrite) return { errors: [mutationByRead] };
      if (client.viewer && !allows(client.viewer.scope, operation.scope))
        return { errors: [beyondScope(operation.scope, client.viewer.tokenId === undefined)] };
      if (isTooDeep(request.variables))
        return { errors: [unreadableRequest('The variables are nested too deeply')] };
      if (hasTooManyValues(request.variables)) return { errors: [unreadableRequest(tooManyValues)] };
      const variables = coerce(request.variables);
      if ('errors' in variables) return invalid(variables.errors);
      const { coerced } = variables;
      const complexity = complexityOf(schema, found.document, node, coerced);
      const most = maxFor(client.viewer);
      if (!(complexity <= most)) return { errors: [requestError(tooComplex('operation', complexity, most))] };
      const run: Operation['execute'] = (context) => execute(coerced, context);
      return { request, type, label, complexity, text: found.text, readsTokens, execute: run };
    },
  };
}

export const tooComplex = (what: 'operation' | 'batch', complexity: number, most: number) =>
  `The ${what} has a complexity of ${complexity}; at most ${most} is allowed`;

const withoutToken = ({ authorization, hasExpiredToken }: Client): Rejected => ({
  errors: [unauthenticated(problemOf(authorization, hasExpiredToken))],
});

const mutationByRead = new GraphQLError('Can only perform a mutation operation from a POST request.', {
  extensions: { code: 'BAD_USER_INPUT', http: { status: 405, headers: { Allow: 'POST' } } },
});

export type Documents = ReturnType<typeof createDocuments>;

/** A document that may be run. */
interface CheckedDocument {
  readonly text: string;
  readonly document: DocumentNode;
  /** Prepares the operation of that name, or without a name the only one. Undefined if there is none. */
  operation(name: string | undefined): PreparedOperation | undefined;
  /** How many fields of compiled code it may take. */
  readonly compilable: number;
}

/** The result of a request that cannot be executed. */
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
 */
export function createDocuments(config: Config, schema: GraphQLSchema = ownSchema) {
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

    /** The document, or the errors of one that cannot be run. */
    read(text: string): CheckedDocument | Rejected {
      const found = known.get(text);
      if (found) return found;
      const document = parsed(text, config);
      const read =
        document instanceof GraphQLError
          ? invalid([document])
          : check(schema, text, document, { config, hideSuggestions: !mayIntrospect });
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
        : check(schema, text, document, { config, hideSuggestions: true });
    },
  };
}

interface CheckOptions {
  readonly config: Config;
  /** Whether errors must not suggest names that the schema has. */
  readonly hideSuggestions: boolean;
}

function check(
  schema: GraphQLSchema,
  text: string,
  document: DocumentNode,
  { config, hideSuggestions }: CheckOptions,
): CheckedDocument | Rejected {
  const errors = errorsIn(schema, document, { config, hideSuggestions });
  if (errors.length > 0) return invalid(errors);
  const breadth = countSelectedFields(schema, document);
  const mayCompile = breadth <= largestCompiled;
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

/** Says why a document has no operation of that name. */
export function noOperation({ definitions }: DocumentNode, name: string | undefined): string {
  const names = definitions.flatMap((each) =>
    each.kind === Kind.OPERATION_DEFINITION ? [each.name?.value ?? 'one without a name'] : [],
  );
  const has = `the document has ${names.length === 0 ? 'none' : names.join(', ')}`;
  return name ? `There is no operation ${name}: ${has}` : `operationName has to name the operation: ${has}`;
}

/** Gives errors of graphql-js the status of a bad request. */
export function invalid(errors: readonly GraphQLError[]): Rejected {
  for (const { extensions } of errors) extensions.http = badRequest;
  return { errors };
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

function errorsIn(
  schema: GraphQLSchema,
  document: DocumentNode,
  { config, hideSuggestions }: CheckOptions,
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

/** The field by which a federation gateway reads the schema of a subgraph. */
const subgraphField = '_service';

/**
 * Whether a document asks for nothing but the schema. An operation with a fragment at its root counts as asking for
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

/** In characters. Tools that put a prefix before the aliases of a client make shorter ones. */
const longestAlias = 100;

/** How often a selection may have the same response name: validation compares all fields of a name in pairs. */
const mostRepeated = 50;

/**
 * How many lines an operation may have for each of its `MAX_TOKENS`. To say where an error is, graphql-js counts the
 * lines before it, once for each error: 500 errors behind 240,000 empty lines took 16 s.
 */
const linesPerToken = 2;

/**
 * How many characters the arguments of an operation may have for each of its `MAX_TOKENS`. Error messages print a wrong
 * argument whole, once for each record.
 */
const argumentCharactersPerToken = 20;

/** How many aliases, and how many directives, a document may have. */
const mostAliases = 30;
const mostDirectives = 30;

/** An error for each limit that the document exceeds. The document need not be valid. */
function overLimits(document: DocumentNode, { MAX_DEPTH, MAX_TOKENS }: Config): GraphQLError[] {
  const lines = document.loc?.endToken.line ?? 0;
  const maxLines = linesPerToken * MAX_TOKENS;
  const maxArgumentCharacters = argumentCharactersPerToken * MAX_TOKENS;
  let argumentCharacters = 0;
  let aliases = 0;
  let longest = 0;
  let directives = 0;
  let repeated = 0;
  visit(document, {
    SelectionSet: ({ selections }) => {
      repeated = Math.max(repeated, countMostFrequent(selections));
    },
    Field({ alias }) {
      if (!alias) return;
      aliases++;
      longest = Math.max(longest, alias.value.length);
    },
    Argument({ value: { loc } }) {
      if (loc) argumentCharacters += loc.end - loc.start;
    },
    Directive: () => void directives++,
  });
  const depth = depthOf(document);
  const found = [
    lines > maxLines && `The operation has ${lines} lines; at most ${maxLines} are allowed`,
    argumentCharacters > maxArgumentCharacters &&
      `The arguments of the operation have ${argumentCharacters} characters; at most ${maxArgumentCharacters} are allowed`,
    depth > MAX_DEPTH && `The operation is ${depth} levels deep; at most ${MAX_DEPTH} are allowed`,
    aliases > mostAliases && `The operation has ${aliases} aliases; at most ${mostAliases} are allowed`,
    // A response repeats an alias for every record.
    longest > longestAlias &&
      `The operation has an alias of ${longest} characters; at most ${longestAlias} are allowed`,
    directives > mostDirectives &&
      `The operation has ${directives} directives; at most ${mostDirectives} are allowed`,
    repeated > mostRepeated &&
      `The operation has a field ${repeated} times in one selection; at most ${mostRepeated} are allowed`,
  ];
  return found.filter((message) => message !== false).map(requestError);
}

/** How often the selection has its most frequent response name; 0 if it is too small to exceed the limit. */
function countMostFrequent(selections: readonly SelectionNode[]): number {
  if (selections.length <= mostRepeated) return 0;
  const counts = new Map<string, number>();
  for (const selection of selections) {
    if (selection.kind !== Kind.FIELD) continue;
    const name = (selection.alias ?? selection.name).value;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return Math.max(0, ...counts.values());
}

/** How many levels of fields the deepest operation has, those within fragments included. */
function depthOf(document: DocumentNode): number {
  const fragments = fragmentsOf(document);
  const known = new Map<string, number>();
  const below = (set: SelectionSetNode | undefined): number => {
    let deepest = 0;
    for (const selection of set?.selections ?? []) {
      const depth =
        selection.kind === Kind.FRAGMENT_SPREAD
          ? inFragment(selection.name.value)
          : below(selection.selectionSet) + (selection.kind === Kind.FIELD ? 1 : 0);
      deepest = Math.max(deepest, depth);
    }
    return deepest;
  };
  const inFragment = (name: string): number => {
    const found = known.get(name);
    if (found !== undefined) return found;
    // Ends the recursion for a fragment that spreads itself, which the validation rejects later.
    known.set(name, 0);
    const depth = below(fragments.get(name)?.selectionSet);
    known.set(name, depth);
    return depth;
  };
  return Math.max(
    ...document.definitions.map((node) =>
      node.kind === Kind.OPERATION_DEFINITION ? below(node.selectionSet) : 0,
    ),
  );
}
