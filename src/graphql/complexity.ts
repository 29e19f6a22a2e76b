/**
 * How large the response to an operation may become, and how many fields the operation selects. Both are counted from the document
 * alone, before any record is read. Each selection and each fragment is visited once, however often a fragment is spread.
 */

import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  getArgumentValues,
  getNamedType,
  getNullableType,
  isAbstractType,
  isInterfaceType,
  isListType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  SchemaMetaFieldDef,
  type SelectionSetNode,
  TypeMetaFieldDef,
  valueFromASTUntyped,
} from 'graphql';
import { weightOfList } from '../schema/filter.ts';
import { pageSize } from '../schema/loading/pagination.ts';
import { fragmentsOf, hasVariable, type Values } from '../schema/operation.ts';
import { groupLimit, statisticsWeight } from '../schema/statistics.ts';

/** How many items count for a list that has no size argument, such as the segments of a session. */
const unsizedList = 5;

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
  const fragments = fragmentsOf(document);
  let countIntrospection: ReturnType<typeof createIntrospectionCount> | undefined;
  const weigh: Weigh = (type, field, listSize) => {
    if (type === SchemaMetaFieldDef || type === TypeMetaFieldDef) {
      isFixed = false;
      countIntrospection ??= createIntrospectionCount(schema, fragments, coerced);
      return { times: 0, listSize, cost: countIntrospection(field) - 1 };
    }
    const written = (argument: string): unknown => {
      const value = field.arguments?.find(({ name }) => name.value === argument)?.value;
      if (value && hasVariable(value)) isFixed = false;
      return value && valueFromASTUntyped(value, coerced);
    };
    const size = (argument: string) => numberIn(written(argument));
    const length = (argument: string) => lengthOf(written(argument));
    const takes = (argument: string) => type.args.some(({ name }) => name === argument);
    const where = type.args.find(({ name }) => name === 'where');
    const items = takes('ids')
      ? within(length('ids'))
      : // A federation gateway names records in `representations`. The field itself rejects too many.
        takes('representations')
        ? length('representations')
        : listSize;
    const filtering = where
      ? weightOfList(getNamedType(where.type).name, written('where'), written('orderBy'))
      : 0;
    const cost = ownWeight(type) + filtering;
    const times = isListType(getNullableType(type.type)) ? items : 1;
    if (takes('maxGroups')) {
      const groups = within(size('maxGroups') ?? groupLimit.default, groupLimit.highest);
      return { times, listSize: groups, cost: cost + statisticsWeight };
    }
    return {
      times,
      // The arguments of a connection give its size. `last` comes first, since `first` may have its default value
      // beside it.
      listSize: takes('first') ? within(size('last') ?? size('first') ?? pageSize.default) : unsizedList,
      cost,
    };
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

/** The field of that name, which may be one of introspection; undefined for `__typename`. */
function fieldOf(type: GraphQLNamedType, name: string): GraphQLField<unknown, unknown> | undefined {
  if (isObjectType(type) || isInterfaceType(type)) return type.getFields()[name] ?? introspectionField(name);
  return undefined;
}

/** The introspection field of that name, `__schema` or `__type`; undefined for any other name. */
function introspectionField(name: string): GraphQLField<unknown, unknown> | undefined {
  return [SchemaMetaFieldDef, TypeMetaFieldDef].find((field) => field.name === name);
}

/**
 * Returns a function that counts how many fields the response to `__schema` or `__type` has, if `@skip` and `@include` leave none
 * out. The count of each selection on each type is computed once, however often the response has it, so that the time does not
 * grow with the response. The document must be valid.
 * @param variables the coerced values.
 */
function createIntrospectionCount(
  schema: GraphQLSchema,
  fragments: ReadonlyMap<string, FragmentDefinitionNode>,
  variables: Values,
): (root: FieldNode) => number {
  const known = new Map<SelectionSetNode, Map<unknown, number>>();
  // The resolvers of the introspection read nothing but the schema.
  const info = { schema } as GraphQLResolveInfo;

  function countField(field: GraphQLField<unknown, unknown>, node: FieldNode, source: unknown): number {
    const type = getNamedType(field.type);
    if (!node.selectionSet || !isObjectType(type)) return 1;
    const given = argumentsOf(field, node);
    const value = given && field.resolve?.(source, given, undefined, info);
    let count = 1;
    for (const item of Array.isArray(value) ? value : [value])
      if (item != null) count += countIn(node.selectionSet, type.getFields(), item);
    return count;
  }

  /** Undefined where they are wrong: the execution rejects them. */
  function argumentsOf(field: GraphQLField<unknown, unknown>, node: FieldNode) {
    try {
      return getArgumentValues(field, node, variables);
    } catch {
      return undefined;
    }
  }

  function countIn(set: SelectionSetNode, fields: Fields, source: unknown): number {
    const counts = known.get(set) ?? new Map<unknown, number>();
    known.set(set, counts);
    const found = counts.get(source);
    if (found !== undefined) return found;
    let count = 0;
    for (const selection of set.selections) {
      if (selection.kind === Kind.FIELD) {
        const field = fields[selection.name.value];
        count += field ? countField(field, selection, source) : 1;
      } else {
        const below =
          selection.kind === Kind.INLINE_FRAGMENT ? selection : fragments.get(selection.name.value);
        if (below) count += countIn(below.selectionSet, fields, source);
      }
    }
    counts.set(source, count);
    return count;
  }

  return (root) => {
    const field = introspectionField(root.name.value);
    return field ? countField(field, root, undefined) : 1;
  };
}

type Fields = Readonly<Record<string, GraphQLField<unknown, unknown>>>;
