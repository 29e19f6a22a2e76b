/**
 * How large the response to an operation may become, and how many fields the operation selects. Both are counted from the document
 * alone, before any record is read. Each selection and each fragment is visited once, however often a fragment is spread.
 */

import {
  type DocumentNode,
  type FieldNode,
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
} from 'graphql';
import { pageSize } from '../schema/loading/pagination.ts';
import { fragmentsOf, hasVariable, type Values } from '../schema/operation.ts';
import { groupLimit } from '../schema/statistics.ts';

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
