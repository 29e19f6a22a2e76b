/**
 * The limits of operations: how large a document may be before it is validated, how deep and how many the values of variables, and how
 * many fields a response may have. All are counted in the request alone, before any record is read. Each selection and each fragment is
 * visited once, however often a fragment is spread.
 */

import {
  type DocumentNode,
  type FieldNode,
  type GraphQLError,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isAbstractType,
  isInterfaceType,
  isIntrospectionType,
  isListType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  SchemaMetaFieldDef,
  type SelectionSetNode,
  TypeMetaFieldDef,
  valueFromASTUntyped,
  visit,
} from 'graphql';
import type { Config } from '../config/config.ts';
import { pageSize } from '../schema/loading/pagination.ts';
import { fragmentsOf, hasVariable, type Values } from '../schema/operation.ts';
import { groupLimit } from '../schema/statistics.ts';
import { requestError } from './overHttp.ts';

/** In characters. Tools that put a prefix before the aliases of a client make shorter ones. */
const longestAlias = 100;

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
export function overLimits(
  document: DocumentNode,
  { MAX_DEPTH, MAX_TOKENS }: Pick<Config, 'MAX_DEPTH' | 'MAX_TOKENS'>,
): GraphQLError[] {
  const lines = document.loc?.endToken.line ?? 0;
  const maxLines = linesPerToken * MAX_TOKENS;
  const maxArgumentCharacters = argumentCharactersPerToken * MAX_TOKENS;
  let argumentCharacters = 0;
  let aliases = 0;
  let longest = 0;
  let directives = 0;
  visit(document, {
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
  ];
  return found.filter((message) => message !== false).map(requestError);
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

/** How many levels the values of variables may have: many more than a filter may. */
const deepestValue = 64;

/** Whether values have too many levels. Functions that read them call themselves for each level, and run out of stack. */
export function isTooDeep(value: unknown, depth = 0): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return depth > deepestValue || Object.values(value).some((each) => isTooDeep(each, depth + 1));
}

/** How many values variables may have. Reading one takes up to 10 µs. */
const mostValues = 5_000;
export const tooManyValues = `The variables have more than ${mostValues} values; at most ${mostValues} are allowed`;

/** Whether there are too many values. Those within lists and objects count as well. */
export function hasTooManyValues(values: unknown): boolean {
  const open = [values];
  let count = 0;
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value !== 'object' || value === null) continue;
    const within = Object.values(value);
    count += within.length;
    if (count > mostValues) return true;
    for (const each of within) open.push(each);
  }
  return false;
}

/** How many items count for a list that has no size argument, such as the segments of a session. */
const unsizedList = 5;

/**
 * How often each field beneath `__schema` and `__type` counts. So what tools send counts for about as many fields as its response has.
 * A validation rule of graphql-js has bounded the lists in lists.
 */
const introspection = 50;

/**
 * The weight of each object in the filter and the order of a list. A list in its default order is read from an index, and any other may
 * have to scan and sort all rows of the viewer: one of a few thousand rows takes as long as 100 fields of a response.
 */
const filterWeight = 50;

/** The complexity of operations whose variables do not change it: no size and no filter of a list is a variable. */
const fixed = new WeakMap<OperationDefinitionNode, number>();

/**
 * How many fields a response may have: each counts as often as the lists around it may have items. The document must
 * be valid.
 * @param coerced the values of the variables, as the schema coerces them.
 */
export function complexityOf(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  coerced: Values,
): number {
  const known = fixed.get(operation);
  if (known !== undefined) return known;
  let isFixed = true;
  const weigh: Weigh = (type, field, listSize) => {
    if (isIntrospectionType(getNamedType(type.type))) {
      const isRoot = type === SchemaMetaFieldDef || type === TypeMetaFieldDef;
      return { times: isRoot ? introspection : 1, listSize, cost: 0 };
    }
    const written = (argument: string): unknown => {
      const value = field.arguments?.find(({ name }) => name.value === argument)?.value;
      if (value && hasVariable(value)) isFixed = false;
      return value && valueFromASTUntyped(value, coerced);
    };
    const takes = (argument: string) => type.args.some(({ name }) => name === argument);
    const size = (argument: string) => numberIn(written(argument));
    // A list argument of a list names its items, such as `ids`. The field itself rejects too many.
    const names = type.args.find((each) => isListType(getNullableType(each.type)));
    const items = names ? lengthOf(written(names.name)) : listSize;
    const times = isListType(getNullableType(type.type)) ? items : 1;
    const cost =
      ownWeight(type) + filterWeight * (objectsIn(written('where')) + objectsIn(written('orderBy')));
    if (takes('maxGroups'))
      return { times, cost, listSize: within(size('maxGroups') ?? groupLimit.default, groupLimit.highest) };
    // The arguments of a connection give its size. `last` comes first, since `first` may have its default value beside it.
    if (takes('first'))
      return { times, cost, listSize: within(size('last') ?? size('first') ?? pageSize.default) };
    return { times, cost, listSize: unsizedList };
  };
  const complexity = countFields(schema, document, operation, weigh);
  if (isFixed) fixed.set(operation, complexity);
  return complexity;
}

/**
 * How many fields the operations select, through all fragments: those of an interface once for each type that has it,
 * as they are compiled. The document must be valid.
 */
export function countSelectedFields(schema: GraphQLSchema, document: DocumentNode): number {
  const copies = (type: GraphQLNamedType) =>
    isAbstractType(type) ? schema.getPossibleTypes(type).length : 1;
  let breadth = 0;
  for (const node of document.definitions) {
    if (node.kind === Kind.OPERATION_DEFINITION)
      breadth += countFields(schema, document, node, () => ({ times: 1, listSize: 1, cost: 0 }), copies);
  }
  return breadth;
}

/** The weight that the schema gives a field, in addition to the 1 that every field counts for. */
const ownWeight = ({ extensions: { weight } }: GraphQLField<unknown, unknown>): number =>
  typeof weight === 'number' ? weight : 0;

/** The size, limited to the bounds. The field itself rejects a size that is out of bounds. */
const within = (size: number, highest: number = pageSize.highest) => Math.min(Math.max(size, 1), highest);

const numberIn = (value: unknown) => (typeof value === 'number' ? value : undefined);

/**
 * The length of a list; 1 for a value that is no list, which GraphQL coerces to a list of one. At least 1: a factor of 0 would
 * hide the selections beneath the field.
 */
const lengthOf = (value: unknown): number => (Array.isArray(value) ? Math.max(1, value.length) : 1);

/** How many objects there are in a value, except for empty ones. */
function objectsIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const within = Object.values(value);
  const own = within.length > 0 && !Array.isArray(value) ? 1 : 0;
  return within.reduce((sum, each) => sum + objectsIn(each), own);
}

/** @param listSize the size of this field if it is a list without a size of its own. */
type Weigh = (type: GraphQLField<unknown, unknown>, field: FieldNode, listSize: number) => Weight;

interface Weight {
  /** How often the fields beneath the field count. */
  readonly times: number;
  /** The size of a list beneath the field that has no size of its own. */
  readonly listSize: number;
  /** What the field costs in addition to the 1 that every field counts for. */
  readonly cost: number;
}

/**
 * Counts the fields of an operation.
 * @param copies how often each field of a type counts.
 */
function countFields(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  weigh: Weigh,
  copies: (type: GraphQLNamedType) => number = () => 1,
): number {
  const fragments = fragmentsOf(document);
  const known = new Map<string, number>();
  const countIn = (set: SelectionSetNode, type: GraphQLNamedType, listSize: number): number => {
    let count = 0;
    for (const selection of set.selections) {
      if (selection.kind === Kind.FIELD) {
        const name = selection.name.value;
        const field = fieldOf(type, name);
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

/** The field of that name, which may be `__schema` or `__type`; undefined for `__typename`. */
function fieldOf(type: GraphQLNamedType, name: string): GraphQLField<unknown, unknown> | undefined {
  const own = isObjectType(type) || isInterfaceType(type) ? type.getFields()[name] : undefined;
  return own ?? [SchemaMetaFieldDef, TypeMetaFieldDef].find((field) => field.name === name);
}
