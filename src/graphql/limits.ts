/**
 * What one operation may ask for: how deep, how much, how often. Counted in the document alone, before anything is
 * looked up, by walking each selection and each fragment once, however often a fragment is spread.
 */

import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLError,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isAbstractType,
  isInterfaceType,
  isListType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
  type ValueNode,
  valueFromASTUntyped,
  visit,
} from 'graphql';
import type { Config } from '../config.ts';
import { coerceVariables } from '../schema/compile.ts';
import { hasVariable } from '../schema/compiledDocument.ts';
import { weightOfList } from '../schema/filtering/weight.ts';
import { pageSize } from '../schema/loading/pagination.ts';
import { groupLimit, statisticsWeight } from '../schema/loading/statistics.ts';
import { countIntrospection, introspectionField } from './introspectionCost.ts';

/** What a list without a size of its own counts for: the segments of a session. */
const unsizedList = 5;

/** The status of a bad request. By `spec`, Yoga sends 200 instead to clients that accept only `application/json`. */
export const badRequest = { status: 400, spec: true };

/** An error of the request as a whole, which says what the request would have to be. */
export function requestError(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'BAD_USER_INPUT', http: badRequest } });
}

/** An error of a request that cannot be understood: a 400 whatever media type the client accepts. */
export function unreadable(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'BAD_USER_INPUT', http: { status: 400 } } });
}

/** In characters: those of tools that put theirs in front of a client's are shorter. */
const longestAlias = 100;

/** How often a selection may have one name of the response: the validation compares each of them with each other. */
const mostRepeated = 50;

/**
 * How many lines an operation may have for each of its `MAX_TOKENS`. To say where an error is, graphql-js counts the
 * lines before it, once for each error: 500 errors behind 240,000 empty lines took 16 s.
 */
const linesPerToken = 2;

/**
 * How many characters the arguments of an operation may have for each of its `MAX_TOKENS`. An argument that turns out
 * to be wrong is printed whole, once for each record.
 */
const argumentCharactersPerToken = 20;

/** What is too much about the document, before it is validated. */
export function overLimits(
  document: DocumentNode,
  { MAX_DEPTH, MAX_ALIASES, MAX_DIRECTIVES, MAX_TOKENS }: Config,
): GraphQLError[] {
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
      repeated = Math.max(repeated, mostAlike(selections));
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
    aliases > MAX_ALIASES && `The operation has ${aliases} aliases; at most ${MAX_ALIASES} are allowed`,
    // A response has them as often as it has records.
    longest > longestAlias &&
      `The operation has an alias of ${longest} characters; at most ${longestAlias} are allowed`,
    directives > MAX_DIRECTIVES &&
      `The operation has ${directives} directives; at most ${MAX_DIRECTIVES} are allowed`,
    repeated > mostRepeated &&
      `The operation has a field ${repeated} times in one selection; at most ${mostRepeated} are allowed`,
  ];
  return found.filter((message) => message !== false).map(requestError);
}

/** How often the name in the response comes that comes most often. */
function mostAlike(selections: readonly SelectionNode[]): number {
  if (selections.length <= mostRepeated) return 0;
  const counts = new Map<string, number>();
  for (const selection of selections) {
    if (selection.kind !== Kind.FIELD) continue;
    const name = (selection.alias ?? selection.name).value;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return Math.max(0, ...counts.values());
}

/** How many fields lie beneath one another, through all fragments. */
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

/** How deep the values of variables may be nested: far deeper than a filter may be. */
const deepestValue = 64;

/** Whether values are nested deeper than any use of them: what reads them calls itself for each level. */
export function isTooDeep(value: unknown, depth = 0): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return depth > deepestValue || Object.values(value).some((each) => isTooDeep(each, depth + 1));
}

/** The same of a whole request, in which the values of variables are a level further down. */
export const isRequestTooDeep = (request: unknown): boolean => isTooDeep(request, -1);

/** How many values variables may have, as many as name a thousand records. To read each takes up to 10 µs. */
const mostValues = 5_000;
export const tooManyValues = `The variables have more than ${mostValues} values; at most ${mostValues} are allowed`;

/** Whether there are more, those within lists and objects counted as well. */
export function areTooMany(values: unknown, most = mostValues): boolean {
  const open = [values];
  let count = 0;
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value !== 'object' || value === null) continue;
    const within = Object.values(value);
    count += within.length;
    if (count > most) return true;
    for (const each of within) open.push(each);
  }
  return false;
}

/** The complexity of operations in which no list has its size or its filter from a variable. */
const fixed = new WeakMap<OperationDefinitionNode, number>();

/**
 * How many fields a response may have: each counts as often as the lists around it may have items. The document must
 * be valid.
 */
export function complexityOf(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  variables: Readonly<Record<string, unknown>>,
): number {
  const known = fixed.get(operation);
  if (known !== undefined) return known;
  const coerced = coerceVariables(schema, operation, variables);
  // Variables that do not fit are an error of the execution.
  if (!coerced) return 0;
  let isFixed = true;
  const fragments = fragmentsOf(document);
  const weigh: Weigh = (type, field, listSize) => {
    const size = (argument: string) => numberIn(argumentOf(argument), coerced);
    const length = (argument: string) => lengthIn(argumentOf(argument), coerced);
    const argumentOf = (argument: string): ValueNode | undefined => {
      const value = field.arguments?.find(({ name }) => name.value === argument)?.value;
      if (value && hasVariable(value)) isFixed = false;
      return value;
    };
    const written = (argument: string): unknown => {
      const value = argumentOf(argument);
      return value && valueFromASTUntyped(value, coerced);
    };
    const takes = (argument: string) => type.args.some(({ name }) => name === argument);
    const items = takes('ids')
      ? within(length('ids'))
      : // What a federation gateway names records by: the field itself rejects too many.
        takes('representations')
        ? length('representations')
        : listSize;
    const cost = ownWeight(type) + (takes('where') ? weightOfList(written('where'), written('orderBy')) : 0);
    const times = isListType(getNullableType(type.type)) ? items : 1;
    if (takes('maxGroups')) {
      const groups = within(size('maxGroups') ?? groupLimit.default, groupLimit.highest);
      return { times, listSize: groups, cost: cost + statisticsWeight };
    }
    return {
      times,
      // The lists of a connection have the size that it was asked for: by `last`, beside which `first` may be its default.
      listSize: takes('first') ? within(size('last') ?? size('first') ?? pageSize.default) : unsizedList,
      cost,
    };
  };
  const complexity = countFields(schema, document, operation, {
    weigh,
    countIntrospection(field) {
      isFixed = false;
      return countIntrospection(schema, fragments, field, coerced);
    },
  });
  if (isFixed) fixed.set(operation, complexity);
  return complexity;
}

/**
 * How many fields the operations select, through all fragments: those of an interface once for each type that has it,
 * as they are compiled. The document must be valid.
 */
export function breadthOf(schema: GraphQLSchema, document: DocumentNode): number {
  const copies = (type: GraphQLNamedType) =>
    isAbstractType(type) ? schema.getPossibleTypes(type).length : 1;
  let breadth = 0;
  for (const node of document.definitions) {
    if (node.kind === Kind.OPERATION_DEFINITION)
      breadth += countFields(schema, document, node, {
        weigh: () => ({ times: 1, listSize: 1, cost: 0 }),
        copies,
      });
  }
  return breadth;
}

/** What a field says that it counts for, beside the one that every field does. */
const ownWeight = ({ extensions: { weight } }: GraphQLField<unknown, unknown>): number =>
  typeof weight === 'number' ? weight : 0;

/** A size within the bounds. The field itself rejects one that is not. */
const within = (size: number, highest: number = pageSize.highest) => Math.min(Math.max(size, 1), highest);

type Variables = Readonly<Record<string, unknown>>;

/** The number that a value is, given the values of the variables with their defaults. */
function numberIn(value: ValueNode | undefined, variables: Variables): number | undefined {
  if (value?.kind === Kind.INT) return Number(value.value);
  const given = givenFor(value, variables);
  return typeof given === 'number' ? given : undefined;
}

/**
 * How many items a value has as a list: what is none stands for a list of one, also where it is a number. At least one, so
 * that nothing makes up for something else.
 */
function lengthIn(value: ValueNode | undefined, variables: Variables): number {
  const items = value?.kind === Kind.LIST ? value.values : givenFor(value, variables);
  return Array.isArray(items) ? Math.max(1, items.length) : 1;
}

/** What is given for a variable. The client names its variables, and may name them after what every object has. */
const givenFor = (value: ValueNode | undefined, variables: Variables): unknown =>
  value?.kind === Kind.VARIABLE && Object.hasOwn(variables, value.name.value)
    ? variables[value.name.value]
    : undefined;

/**
 * How often what is beneath a field counts, given the size of the lists where it stands, the size of the lists right
 * beneath it, and what the field itself costs beside itself.
 */
type Weigh = (
  type: GraphQLField<unknown, unknown>,
  field: FieldNode,
  listSize: number,
) => { times: number; listSize: number; cost: number };

interface CountOptions {
  readonly weigh: Weigh;
  /** How often each field of a type counts; once unless told otherwise. */
  copies?(type: GraphQLNamedType): number;
  /** What `__schema` or `__type` counts for with all that is beneath it, if that is not counted like everything else. */
  countIntrospection?(field: FieldNode): number;
}

/** Counts the fields of an operation. */
function countFields(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  { weigh, copies = () => 1, countIntrospection }: CountOptions,
): number {
  const fragments = fragmentsOf(document);
  const known = new Map<string, number>();
  const countIn = (set: SelectionSetNode, type: GraphQLNamedType, listSize: number): number => {
    let count = 0;
    for (const selection of set.selections) {
      if (selection.kind === Kind.FIELD) {
        if (countIntrospection && introspectionField(selection.name.value)) {
          count += countIntrospection(selection);
          continue;
        }
        const field = fieldOf(type, selection.name.value);
        const below = field && weigh(field, selection, listSize);
        let weight = 1 + (below?.cost ?? 0);
        if (field && below && selection.selectionSet)
          weight += below.times * countIn(selection.selectionSet, getNamedType(field.type), below.listSize);
        count += weight * copies(type);
      } else if (selection.kind === Kind.INLINE_FRAGMENT) {
        const condition = selection.typeCondition && schema.getType(selection.typeCondition.name.value);
        count += countIn(selection.selectionSet, condition ?? type, listSize);
      } else {
        const key = `${selection.name.value} ${listSize}`;
        const fragment = fragments.get(selection.name.value);
        const condition = fragment && schema.getType(fragment.typeCondition.name.value);
        const found = known.get(key) ?? (condition ? countIn(fragment.selectionSet, condition, listSize) : 0);
        known.set(key, found);
        count += found;
      }
    }
    return count;
  };
  const root = schema.getRootType(operation.operation);
  return root ? countIn(operation.selectionSet, root, 1) : 0;
}

/** The field, also of the introspection. Undefined for `__typename`, which has nothing beneath it. */
function fieldOf(type: GraphQLNamedType, name: string): GraphQLField<unknown, unknown> | undefined {
  if (isObjectType(type) || isInterfaceType(type)) return type.getFields()[name] ?? introspectionField(name);
  return undefined;
}

function fragmentsOf({ definitions }: DocumentNode): Map<string, FragmentDefinitionNode> {
  return new Map(
    definitions.flatMap((node) =>
      node.kind === Kind.FRAGMENT_DEFINITION ? [[node.name.value, node] as const] : [],
    ),
  );
}
