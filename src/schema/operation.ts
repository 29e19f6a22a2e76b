/**
 * Prepares operations, which are parsed and validated once and executed many times. Each execution coerces the variables once, and
 * runs exactly once: by graphql-js, or by what an extension has made of the document.
 */

import { randomUUID } from 'node:crypto';
import {
  type ArgumentNode,
  type ASTNode,
  type DocumentNode,
  type ExecutionResult,
  execute,
  type FragmentDefinitionNode,
  GraphQLError,
  GraphQLIncludeDirective,
  GraphQLScalarType,
  type GraphQLSchema,
  GraphQLSkipDirective,
  getDirectiveValues,
  getOperationAST,
  getVariableValues,
  Kind,
  type NamedTypeNode,
  type OperationDefinitionNode,
  OperationTypeNode,
  type SelectionNode,
  separateOperations,
  type ValueNode,
  visit,
} from 'graphql';
import { highestOf, type Scope } from '../auth/scopes.ts';
import { operationSpans } from '../channels.ts';
import type { CompiledOperation, Context } from './context.ts';
import { writeGlobalId } from './globalId.ts';
import { schema as ownSchema } from './schema.ts';

export interface PreparedOperation {
  readonly node: OperationDefinitionNode;
  readonly type: OperationTypeNode;
  /** See `labelOf`. */
  readonly label: string;
  /** The scope that it needs of the token: the highest that one of its root fields needs. */
  readonly scope: Scope;
  /** Whether it may read tokens. Its result depends on the token of the viewer, and changes without an announcement. */
  readsTokens(variables: unknown): boolean;
  /** The values of the operation's variables, with their defaults; or the errors of the values that were sent. */
  coerce(variables: Values): { readonly coerced: Values } | { readonly errors: readonly GraphQLError[] };
  /** Executes the operation with values that `coerce` has made. The result is that of graphql-js. */
  execute(coerced: Values, context: Context | undefined): Promise<ExecutionResult>;
  /** Does both. */
  run(variables: Values, context: Context): Promise<ExecutionResult>;
}

interface PrepareOptions {
  readonly operationName?: string | undefined;
  /** By default, the gateway's own. */
  readonly schema?: GraphQLSchema;
  /** Whether errors must not suggest names that the schema has. */
  readonly hideSuggestions?: boolean;
  /** Whether it may be compiled. */
  readonly mayCompile?: boolean;
}

/** The type of values that are coerced already. Its name is random, so no client can use it. */
const coercedType = new GraphQLScalarType({ name: 'Coerced', parseValue: (value) => value });
const nameOfType = randomUUID();

/** Names that type in a document. */
const coercedTypeNode: NamedTypeNode = {
  kind: Kind.NAMED_TYPE,
  name: { kind: Kind.NAME, value: nameOfType },
};

/** Finds that type by its name. */
export const findCoercedType = (name: string) => (name === nameOfType ? coercedType : undefined);

/** How many operations this process has executed: as compiled code, and by graphql-js. Only tests read it. */
export const executions = { compiled: 0, interpreted: 0 };

/** How many variants of one operation may be compiled. graphql-js executes any others. */
const maxVariants = 8;

/** How many errors about a document, or about the variables, a response has. */
export const maxErrors = 10;

/** The kind and the root field of a valid operation, for logs and metrics. There are few labels, and none has text of a client. */
function labelOf({ operation, selectionSet }: OperationDefinitionNode): string {
  // Clients with a normalised cache add `__typename` to every selection.
  const isNamed = (each: SelectionNode) => each.kind !== Kind.FIELD || each.name.value !== '__typename';
  const named = selectionSet.selections.filter(isNamed);
  const [selection, ...others] = named.length > 0 ? named : selectionSet.selections;
  const isOneField = selection?.kind === Kind.FIELD && others.length === 0;
  return `${operation} ${isOneField ? selection.name.value : 'of several fields'}`;
}

/** Prepares an operation of a valid document. Returns undefined if there is no operation of that name. */
export function prepare(
  document: DocumentNode,
  { operationName, schema = ownSchema, hideSuggestions = true, mayCompile = true }: PrepareOptions = {},
): PreparedOperation | undefined {
  const operation = getOperationAST(document, operationName);
  if (!operation) return undefined;
  const label = labelOf(operation);
  const own = separateOperations(document)[operation.name?.value ?? ''] ?? document;
  const findVariant = createVariants(own, operation, mayCompile);
  const getType = (name: string) => findCoercedType(name) ?? schema.getType(name);
  const forValues: GraphQLSchema = Object.create(schema, { getType: { value: getType } });

  const coerce: PreparedOperation['coerce'] = (variables) => {
    const definitions = operation.variableDefinitions ?? [];
    const { coerced, errors } = getVariableValues(schema, definitions, variables, {
      maxErrors,
      hideSuggestions,
    });
    if (coerced) return { coerced };
    nameArguments(document, errors);
    return { errors };
  };
  const mayReadTokens = readsTokens(own);
  let isRepeated = false;
  const executeOnce: PreparedOperation['execute'] = async (coerced, contextValue) => {
    const variant = findVariant(coerced);
    // Compiling takes as long as a few runs, and many operations come once.
    if (isRepeated && variant.mayCompile) {
      variant.mayCompile = false;
      variant.compiled = await contextValue?.compile?.(schema, variant.document);
    }
    isRepeated = true;
    const { compiled } = variant;
    executions[compiled ? 'compiled' : 'interpreted']++;
    if (compiled) return compiled(coerced, contextValue);
    const result = await execute({
      schema: forValues,
      document: variant.document,
      variableValues: coerced,
      contextValue,
      hideSuggestions,
    });
    nameArguments(document, result.errors);
    return result;
  };
  const executeTraced: PreparedOperation['execute'] = (coerced, context) =>
    operationSpans.hasSubscribers
      ? operationSpans.tracePromise(async () => executeOnce(coerced, context), { label })
      : executeOnce(coerced, context);
  return {
    node: operation,
    type: operation.operation,
    label,
    scope: operation.operation === OperationTypeNode.MUTATION ? scopeOf(schema, own) : 'read',
    readsTokens: (variables) => mayReadTokens || namesToken(variables),
    coerce,
    execute: executeTraced,
    async run(variables, context) {
      const read = coerce(variables);
      return 'errors' in read ? read : executeTraced(read.coerced, context);
    },
  };
}

/** The scope that the mutation of a valid document needs: its fields of `Mutation` say it. */
function scopeOf(schema: GraphQLSchema, document: DocumentNode): Scope {
  const found: Scope[] = [];
  const mutations = schema.getMutationType()?.getFields() ?? {};
  visit(document, {
    Field({ name }) {
      // Only mutations have this extension. One without it needs the highest scope. No other field has the name of a mutation.
      const field = mutations[name.value];
      if (field) found.push((field.extensions.scope as Scope | undefined) ?? 'manage');
    },
  });
  return highestOf(found) ?? 'read';
}

/** The fields that lead to tokens. */
const tokenFields = ['apiTokens', 'currentToken', 'createApiToken', 'revokeApiToken'];

/** What the global ids of tokens begin with, and no others: base64 maps groups of three bytes to groups of four characters. */
const beginningOfIds = writeGlobalId('ApiToken', '');

/** Whether the variables of an operation may have the global id of a token. No input type has an id deeper than within a list of objects. */
export function namesToken(value: unknown, depth = 4): boolean {
  if (typeof value === 'string') return value.startsWith(beginningOfIds);
  return (
    depth > 0 && value instanceof Object && Object.values(value).some((each) => namesToken(each, depth - 1))
  );
}

/** Whether a document may read or change tokens, unless its variables name one. It may not if it has none of the names. */
export function readsTokens(document: DocumentNode): boolean {
  let isFound = false;
  visit(document, {
    Field({ name }) {
      isFound ||= tokenFields.includes(name.value);
    },
    NamedType({ name }) {
      isFound ||= name.value === 'ApiToken';
    },
    StringValue({ value }) {
      isFound ||= value.startsWith(beginningOfIds);
    },
  });
  return isFound;
}

/** How many variants of an operation of a valid document may be compiled. */
export const countVariants = (document: DocumentNode): number =>
  Math.min(2 ** conditionVariablesIn(document).length, maxVariants);

/** An operation for certain values of its conditions. */
interface Variant {
  readonly document: DocumentNode;
  /** Whether it may still be compiled. */
  mayCompile: boolean;
  compiled?: CompiledOperation | undefined;
}

/**
 * Returns a function that finds the variant of an operation for given variables. Each combination of values of the conditions has a
 * variant without directives, for two reasons: the reads of a node are planned once, and a compiler may store conditions on nodes that
 * several fields share.
 * @param document has no other operation.
 */
function createVariants(
  document: DocumentNode,
  { variableDefinitions = [] }: OperationDefinitionNode,
  mayCompile: boolean,
): (variables: Values) => Variant {
  const conditions = conditionVariablesIn(document);
  const withDefault = variableDefinitions.filter(({ defaultValue }) => defaultValue);
  const variants = new Map<string, Variant>();

  return (variables) => {
    // Such a variable can be an argument or a condition that must not be null. graphql-js makes the error.
    const nulls = withDefault.filter(({ variable }) => variables[variable.name.value] === null);
    if (nulls.length > 0) {
      const isCondition = nulls.some(({ variable }) => conditions.includes(variable.name.value));
      return {
        document: executableDocument(document, isCondition ? undefined : variables),
        mayCompile: false,
      };
    }
    const key = conditions.map((name) => Number(variables[name])).join('');
    const found = variants.get(key);
    if (found) return found;
    const isStored = variants.size < maxVariants;
    const variant = {
      document: executableDocument(document, variables),
      mayCompile: mayCompile && isStored,
    };
    if (isStored) variants.set(key, variant);
    return variant;
  };
}

/**
 * Names the argument or variable in errors of graphql-js, which only point into the document: sets `extensions.argument` and
 * `extensions.variable` of each error where possible.
 */
export function nameArguments(document: DocumentNode, errors: readonly GraphQLError[] | undefined): void {
  let known: ArgumentNode[] | undefined;
  for (const error of errors ?? []) {
    const { originalError: cause } = error;
    // Client errors of resolvers name their argument already, and unexpected errors are masked.
    if (error.extensions.code !== undefined || (cause && !(cause instanceof GraphQLError))) continue;
    known ??= argumentsIn(document);
    const argument = argumentOf(error, known);
    if (argument !== undefined) error.extensions.argument = argument;
    const [node] = error.nodes ?? [];
    if (node?.kind === Kind.VARIABLE_DEFINITION) error.extensions.variable = node.variable.name.value;
  }
}

function argumentsIn(document: DocumentNode): ArgumentNode[] {
  const found: ArgumentNode[] = [];
  visit(document, { Argument: (node) => void found.push(node) });
  return found;
}

function argumentOf({ message, nodes }: GraphQLError, known: readonly ArgumentNode[]): string | undefined {
  // A missing argument is nowhere in the document, so its name is read from the message.
  const [, missing] = /^(?:Field "[^"]*" argument|Argument) "(\w+)" /.exec(message) ?? [];
  if (missing !== undefined) return missing;
  const [node] = nodes ?? [];
  if (node?.kind === Kind.VARIABLE_DEFINITION) {
    const names = new Set(
      known
        .filter((argument) => hasVariable(argument.value, node.variable.name.value))
        .map(({ name }) => name.value),
    );
    return names.size === 1 ? [...names][0] : undefined;
  }
  return known.find(({ loc }) => loc && node?.loc && loc.start <= node.loc.start && node.loc.end <= loc.end)
    ?.name.value;
}

/** The fragments of a document, by their names. */
export function fragmentsOf({ definitions }: DocumentNode): Map<string, FragmentDefinitionNode> {
  const fragments = definitions.filter((node) => node.kind === Kind.FRAGMENT_DEFINITION);
  return new Map(fragments.map((node) => [node.name.value, node]));
}

/** The values of variables by their names. */
export type Values = Readonly<Record<string, unknown>>;

/**
 * Copies a valid document for coerced values of its variables. These include the defaults of variables that were not sent. Every node
 * is a copy, since a compiler may modify nodes.
 * @param conditions the values of variables in `@skip` and `@include`: the copy has neither these directives nor what they
 * exclude. Without them, the directives stay.
 */
function executableDocument(document: DocumentNode, conditions?: Values): DocumentNode {
  return visit(document, {
    enter(node: ASTNode) {
      if (node.kind === Kind.VARIABLE_DEFINITION) {
        const { defaultValue: _, ...others } = node;
        return { ...others, type: coercedTypeNode };
      }
      if (!conditions || !('directives' in node) || !node.directives) return { ...node };
      const isSkipped = getDirectiveValues(GraphQLSkipDirective, node, conditions)?.if === true;
      if (isSkipped || getDirectiveValues(GraphQLIncludeDirective, node, conditions)?.if === false)
        return null;
      const { directives: _, ...others } = node;
      return others;
    },
  });
}

/** The names of the variables in the conditions of a document. */
function conditionVariablesIn(document: DocumentNode): string[] {
  const names = new Set<string>();
  visit(document, {
    Directive({ arguments: given = [] }) {
      for (const { value } of given) if (value.kind === Kind.VARIABLE) names.add(value.name.value);
    },
  });
  return [...names];
}

/** Whether a value in a document contains a variable, or that of a certain name. */
export function hasVariable(value: ValueNode, wanted?: string): boolean {
  let found = false;
  visit(value, {
    Variable({ name }) {
      found ||= wanted === undefined || name.value === wanted;
    },
  });
  return found;
}
