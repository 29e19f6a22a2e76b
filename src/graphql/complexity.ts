/**
 * How much an operation may make a response have, and how many fields it selects. Both are counted in the document alone,
 * before any record is read: each selection and each fragment is visited once, however often a fragment is spread.
 */

import {
  type DocumentNode,
  type FieldNode,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLSchema,
  getIntrospectionQuery,
  getNamedType,
  getNullableType,
  getOperationAST,
  isAbstractType,
  isInterfaceType,
  isListType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  parse,
  type SelectionSetNode,
  type ValueNode,
  valueFromASTUntyped,
} from 'graphql';
import { hasVariable, type Values } from '../schema/compiledDocument.ts';
import { weightOfList } from '../schema/filtering/weight.ts';
import { fragmentsOf } from '../schema/fragments.ts';
import { pageSize } from '../schema/loading/pagination.ts';
import { groupLimit, statisticsWeight } from '../schema/loading/statistics.ts';
import { createIntrospectionCount, introspectionField } from './introspectionCost.ts';

/** What a list without a size of its own counts for: the segments of a session. */
const unsizedList = 5;

/** The complexity of operations that have the same with any variables: no list takes its size or filter from one. */
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
  let introspectionCount: ReturnType<typeof createIntrospectionCount> | undefined;
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
      : // By `representations` a federation gateway names records. The field itself rejects too many.
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
      // A connection has as many items as its arguments say. Where `last` is given, `first` may have its default
      // beside it.
      listSize: takes('first') ? within(size('last') ?? size('first') ?? pageSize.default) : unsizedList,
      cost,
    };
  };
  const complexity = countFields(schema, document, operation, {
    weigh,
    countIntrospection(field) {
      isFixed = false;
      introspectionCount ??= createIntrospectionCount(schema, fragments, coerced);
      return introspectionCount(field);
    },
  });
  if (isFixed) fixed.set(operation, complexity);
  return complexity;
}

/** The complexity of the introspection query by which tools read the whole schema. */
export function complexityOfTools(schema: GraphQLSchema): number {
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
      breadth += countFields(schema, document, node, {
        weigh: () => ({ times: 1, listSize: 1, cost: 0 }),
        copies,
      });
  }
  return breadth;
}

/** The weight that the schema gives a field, in addition to the 1 that every field counts for. */
const ownWeight = ({ extensions: { weight } }: GraphQLField<unknown, unknown>): number =>
  typeof weight === 'number' ? weight : 0;

/** The size, moved into the bounds. The field itself rejects one that is out of bounds. */
const within = (size: number, highest: number = pageSize.highest) => Math.min(Math.max(size, 1), highest);

/** The value of an argument if it is a number, written or given by a variable. */
function numberIn(value: ValueNode | undefined, variables: Values): number | undefined {
  if (value?.kind === Kind.INT) return Number(value.value);
  const given = givenFor(value, variables);
  return typeof given === 'number' ? given : undefined;
}

/**
 * How many items a value has as a list; a value that is no list stands for a list of one. At least 1, since a factor of 0
 * would hide what is selected beneath the field.
 */
function lengthIn(value: ValueNode | undefined, variables: Values): number {
  const items = value?.kind === Kind.LIST ? value.values : givenFor(value, variables);
  return Array.isArray(items) ? Math.max(1, items.length) : 1;
}

/** The value of a variable. Its name may be that of a property which every object has, such as `constructor`. */
const givenFor = (value: ValueNode | undefined, variables: Values): unknown =>
  value?.kind === Kind.VARIABLE && Object.hasOwn(variables, value.name.value)
    ? variables[value.name.value]
    : undefined;

/** @param listSize the size of a list that has no size of its own, where the field stands. */
type Weigh = (type: GraphQLField<unknown, unknown>, field: FieldNode, listSize: number) => Weight;

interface Weight {
  /** How often the fields beneath the field count. */
  readonly times: number;
  /** The size of a list beneath the field that has no size of its own. */
  readonly listSize: number;
  /** What the field costs in addition to the 1 that every field counts for. */
  readonly cost: number;
}

interface CountOptions {
  readonly weigh: Weigh;
  /** How often each field of a type counts; once unless told otherwise. */
  copies?(type: GraphQLNamedType): number;
  /** Counts `__schema` or `__type` with all that is beneath it. Without this function they are counted like any field. */
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
        const name = selection.name.value;
        if (countIntrospection && name.startsWith('__') && introspectionField(name)) {
          count += countIntrospection(selection);
          continue;
        }
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

/** The field of that name, those of the introspection included; undefined for `__typename`. */
function fieldOf(type: GraphQLNamedType, name: string): GraphQLField<unknown, unknown> | undefined {
  if (isObjectType(type) || isInterfaceType(type)) return type.getFields()[name] ?? introspectionField(name);
  return undefined;
}
