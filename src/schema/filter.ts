/**
 * The arguments `where` and `orderBy` of lists: the fields by which the lists of a type can be filtered and ordered, their input types,
 * and what `where` means as a condition on rows.
 */

import { fieldOf, linkBy } from '../database/dataModel.ts';
import { type ListedType, listedTypes, type ViewerRef, visibleTo } from '../database/models.ts';
import { countJoins, isText } from '../database/reader/statement.ts';
import { argumentError } from '../errors.ts';
import { builder } from './builder.ts';
import {
  defaultOrder,
  fingerprintOf,
  type Order,
  orderKey,
  type PageArguments,
} from './loading/pagination.ts';
import { type FilterTarget, type ListFilter, needsIn } from './loading/rows.ts';

/** A field by which a list can be filtered. */
interface FilterField {
  readonly name: string;
  readonly description: string;
  readonly target: FilterTarget;
  readonly isNullable: boolean;
}

/** The records of a list: those of a model, or devices of all kinds, which share the fields of their interface. */
export type FilterableType = (typeof filterableTypes)[number];
const filterableTypes = [...listedTypes, 'Device'] as const;

/** The model of a listed type. For devices of all kinds it is one of the kinds: the shared columns are the same in each. */
export const modelOf = (type: FilterableType): ListedType => (type === 'Device' ? 'DttDevice' : type);

/** Returns a function that makes the value for a key the first time, and always returns the same. */
export function once<Key, Value>(make: (key: Key) => Value): (key: Key) => Value {
  const made = new Map<Key, Value>();
  return (key) => {
    const value = made.get(key) ?? make(key);
    made.set(key, value);
    return value;
  };
}

/** The input type of `where`. `addFilters` implements it and the next. */
export const filterRef = once((type: FilterableType) => builder.inputRef<FilterInput>(`${type}Filter`));

/** The input type of the items of `orderBy`. */
export const orderRef = once((type: FilterableType) => builder.inputRef<OrderInput>(`${type}Order`));

/** The fields by which lists of a type can be filtered. Must not be called before all types have their fields. */
const filterFields = once((type: FilterableType): readonly FilterField[] => {
  const config = builder.configStore.getTypeConfig(type);
  const interfaces = config.kind === 'Object' ? config.interfaces : [];
  const names = [...interfaces.map((each) => builder.configStore.getTypeConfig(each).name), type];
  const fields = names.flatMap((each) => [...builder.configStore.getFields(each)]);
  return fields.flatMap(([name, { type: its, extensions, description }]) => {
    const target = needsIn(extensions ?? {})?.filter;
    if (!target) return [];
    const isNullable = 'nullable' in its && its.nullable;
    const more = 'link' in target ? ' The record must have one that meets this filter.' : '';
    return { name, description: `${description ?? ''}${more}`, target, isNullable };
  });
});

interface OrderInput {
  /** Its column. */
  readonly field: string;
  readonly direction: 'ASC' | 'DESC';
}

export interface ListArguments extends PageArguments {
  readonly where?: FilterInput | null | undefined;
  readonly orderBy?: readonly OrderInput[] | null | undefined;
}

/**
 * Reads `where` and `orderBy`.
 * @throws a client error that names the argument which is wrong.
 */
export function readListArguments(
  type: FilterableType,
  { where, orderBy }: ListArguments,
  viewer: ViewerRef,
): { readonly order: Order; readonly filter: ListFilter } {
  const condition = readFilter(type, where, viewer);
  const ordered = readOrder(type, orderBy);
  // The lists of all kinds of devices have the same default order.
  const order = ordered ?? defaultOrder(modelOf(type));
  const key = condition ? JSON.stringify(where) : '';
  const fingerprint = condition || ordered ? fingerprintOf(type, order, key) : undefined;
  return { order: { ...order, fingerprint }, filter: { condition, key } };
}

/**
 * Translates `orderBy` into an order, undefined if it names no field. Ties are broken by id in the direction of the last
 * field, so that an index on one field and the id has the rows in this order.
 * @throws a client error about the argument `orderBy`.
 */
function readOrder(type: FilterableType, orderBy: ListArguments['orderBy']): Order | undefined {
  const given = orderBy ?? [];
  const last = given.at(-1);
  if (!last) return undefined;
  if (given.length > limits.keys)
    throw argumentError('orderBy', `orderBy must have at most ${limits.keys} fields`);
  if (new Set(given.map(({ field }) => field)).size < given.length)
    throw argumentError('orderBy', 'orderBy must name each field once');
  const keys = given.map(({ field, direction }) => orderKey(modelOf(type), field, direction === 'DESC'));
  return { keys, isDescending: last.direction === 'DESC' };
}

/** A filter as a client writes it. */
export interface FilterInput {
  readonly [field: string]: unknown;
}

/** Limits of one filter and of one order. */
export const limits = {
  /** Conditions of a filter, by `countedAs`. */
  conditions: 50,
  /** Tables that a filter joins. PostgreSQL compares the orders of all joins to plan a statement: 48 of them took it 1 to 3 s. */
  joins: 12,
  /** Items of one `in` list. */
  items: 100,
  /** Characters of a `contains` or `startsWith` pattern. PostgreSQL evaluates the pattern again for each row. */
  pattern: 200,
  /** Fields of one `orderBy`. */
  keys: 3,
} as const;

/** What counts as a condition. A link without conditions counts as well, since it is a part of the statement too. */
const countedAs = 'each comparison, each link, each `not`, and each item of `and` and `or` counts as one';

/** The place of a condition in a filter. */
interface ConditionPlace {
  readonly type: FilterableType;
  readonly path: string;
  /** What was read of the filter so far. */
  readonly reading: { readonly viewer: ViewerRef; conditions: number };
}

/** A condition that no row meets. */
const never = { id: { in: [] } };

/**
 * Translates a filter into a condition; undefined if all rows meet the filter. The condition is true or false for every row, never
 * null, so that `not` inverts it. A link matches only records that the viewer may see: a filter must not reveal anything about
 * others.
 * @throws a client error about the argument `where`.
 */
export function readFilter(
  type: FilterableType,
  where: FilterInput | null | undefined,
  viewer: ViewerRef,
): object | undefined {
  if (where == null) return undefined;
  // The filter as a whole is no condition.
  const condition = readRecord(where, { type, path: 'where', reading: { viewer, conditions: -1 } });
  const joins = condition ? countJoins(modelOf(type), condition) : 0;
  if (joins > limits.joins)
    throw argumentError(
      'where',
      `where must join at most ${limits.joins} tables, and joins ${joins}: put conditions on one linked record under one link`,
    );
  return condition;
}

/** The condition that a record meets all of these; undefined if every record does. */
function readRecord(where: FilterInput, place: ConditionPlace): object | undefined {
  const { type, reading } = place;
  count(reading);
  const conditions = Object.entries(where).map(([name, wanted]) => {
    const within = { ...place, path: `${place.path}.${name}` };
    const field = filterFields(type).find((each) => each.name === name);
    // The schema has validated that the value is an object, or a list of them for `and` and `or`.
    const given = (wanted ?? rejectNull(within.path, field)) as FilterInput;
    if (name === 'not') return negated(readRecord(given, within));
    if (name === 'and' || name === 'or') {
      const items = [given]
        .flat()
        .map((item, index) => readRecord(item, { ...within, path: `${within.path}[${index}]` }));
      return name === 'and' ? all(items) : either(items);
    }
    // The input type has only the fields of this list, and the three above.
    if (!field) throw new Error(`${type} cannot be filtered by ${name}`);
    return readField(field, given, within);
  });
  return all(conditions);
}

function readField(field: FilterField, wanted: FilterInput, place: ConditionPlace): object | undefined {
  const { type, path, reading } = place;
  const { target } = field;
  if ('link' in target) {
    const linked = readRecord(wanted, { ...place, type: target.link });
    return { [linkBy(modelOf(type), target.by)]: all([visibleTo(reading.viewer, target.link), linked]) };
  }
  const conditions = Object.entries(wanted).map(([operator, given]) => {
    count(reading);
    const value = given ?? rejectNull(`${path}.${operator}`, operator === 'isNull' ? undefined : field);
    checkValue(path, operator, value);
    if ('columns' in target) return compareColumns(target.columns, operator, value);
    const condition = target.condition(reading.viewer);
    return value === true ? condition : { NOT: condition };
  });
  return all(conditions);
}

function count(reading: ConditionPlace['reading']): void {
  reading.conditions++;
  if (reading.conditions > limits.conditions) throw tooMuch(`${limits.conditions} conditions: ${countedAs}`);
}

/** Compares the value of the first column that is not null. */
function compareColumns(
  [column, ...others]: readonly [string, ...string[]],
  operator: string,
  value: unknown,
): object {
  const isNull = { [column]: null };
  const hasValue = { [column]: { not: null } };
  const [next, ...further] = others;
  const rest = next && compareColumns([next, ...further], operator, value);
  if (operator === 'isNull') {
    if (value === true) return rest ? { AND: [isNull, rest] } : isNull;
    return rest ? { OR: [hasValue, rest] } : hasValue;
  }
  // For a row without a value, the comparison alone would be null. This makes it false.
  const matches = { AND: [hasValue, { [column]: comparison(operator, value) }] };
  return rest ? { OR: [matches, { AND: [isNull, rest] }] } : matches;
}

function comparison(operator: string, value: unknown): object {
  if (operator === 'eq') return { equals: value };
  if (operator === 'ne') return { not: value };
  if (isPattern(operator))
    // LIKE would read these characters as wildcards and escapes.
    return { [operator]: String(value).replace(/[\\%_]/g, '\\$&'), mode: 'insensitive' };
  return { [operator]: value };
}

const isPattern = (operator: string) => operator === 'contains' || operator === 'startsWith';

function checkValue(field: string, operator: string, value: unknown): void {
  const path = `${field}.${operator}`;
  const values = [value].flat();
  if (values.length > limits.items) throw tooMuch(`${limits.items} items in ${path}`);
  // `length` would count an emoji as two characters.
  if (isPattern(operator) && [...String(value)].length > limits.pattern)
    throw argumentError('where', `${path} must have at most ${limits.pattern} characters`);
  // JSON has no largest number, so a number of a client may be read as infinite.
  if (values.some((each) => typeof each === 'number' && !Number.isFinite(each)))
    throw argumentError('where', `${path} must be a finite number`);
  if (values.some((each) => typeof each === 'string' && !isText(each)))
    throw argumentError(
      'where',
      `${path} has a character that no text can have: NUL, or half a surrogate pair`,
    );
}

/** Combines conditions with AND; undefined if there are none. */
function all(conditions: readonly (object | undefined)[]): object | undefined {
  const known = conditions.filter((each) => each !== undefined);
  return known.length > 1 ? { AND: known } : known[0];
}

/** Combines conditions with OR; undefined if one of them is undefined, since every row meets that one. */
function either(conditions: readonly (object | undefined)[]): object | undefined {
  const known = conditions.filter((each) => each !== undefined);
  if (known.length < conditions.length) return undefined;
  return known.length > 0 ? { OR: known } : never;
}

const negated = (condition: object | undefined) => (condition ? { NOT: condition } : never);

/** @param field for a hint how to filter for records without a value, if that is possible. */
function rejectNull(path: string, field?: FilterField): never {
  let hint = field?.isNullable ? ': isNull asks for records without a value' : '';
  if (field && 'link' in field.target) hint = `: not: { ${field.name}: {} } asks for records without one`;
  throw argumentError('where', `${path} must not be null${hint}`);
}

function tooMuch(most: string): Error {
  return argumentError('where', `where must have at most ${most}`);
}

const direction = builder.enumType('OrderDirection', {
  description: 'Which way a list is ordered. Records without a value come last in both directions.',
  values: {
    ASC: { description: 'Lowest, earliest or first in the alphabet first.' },
    DESC: { description: 'Highest, latest or last in the alphabet first.' },
  } as const,
});

/** Implements the input types of filters and orders. Pothos reads fields in the order of types, so this has to come after all other types. */
export function addFilters(): void {
  for (const type of filterableTypes) {
    filterRef(type).implement({
      description:
        `Conditions on records of the type ${type}. All that are given have to be met, and \`{}\` is met by every record. A record without a value meets no ` +
        `comparison but \`isNull\`. At most ${limits.conditions} conditions: ${countedAs}. ` +
        `At most ${limits.joins} joins: one for each link, and one more for a link to a template.`,
      fields: (t) => ({
        ...Object.fromEntries(
          filterFields(type).map((field) => [
            field.name,
            t.field({ type: comparisonsOf(type, field), description: field.description }),
          ]),
        ),
        and: t.field({
          type: [filterRef(type)],
          description: 'All of these conditions are met. An empty list is met by every record.',
        }),
        or: t.field({
          type: [filterRef(type)],
          description: 'At least one of these conditions is met. An empty list is met by no record.',
        }),
        not: t.field({
          type: filterRef(type),
          description: 'This condition is not met: exactly the records that it leaves out.',
        }),
      }),
    });
    orderRef(type).implement({
      description: `Orders a list by this field, and records that are equal in it by the next one. Ties are broken by id.`,
      fields: (t) => ({
        field: t.field({ type: orderFields(type), required: true, description: 'What to order by.' }),
        direction: t.field({ type: direction, required: true, description: 'Which way.' }),
      }),
    });
  }
}

/**
 * The fields that lists of a type can be ordered by: those of one column, such as CREATED_AT. Lists cannot be ordered by id: no index has
 * the ids of one user in order, so PostgreSQL would scan the rows of all users. Devices of several kinds cannot be ordered by text, since
 * the gateway merges them and does not know the collation of the database.
 */
function orderFields(type: FilterableType) {
  const values = filterFields(type).flatMap(({ name, target }) => {
    const [column, ...others] = 'columns' in target ? target.columns : [];
    if (column === undefined || others.length > 0) return [];
    const { isKey, type: scalar } = fieldOf(modelOf(type), column);
    if (isKey || (type === 'Device' && scalar === 'String')) return [];
    const constant = name.replace(/([a-z\d])([A-Z])/g, '$1_$2').toUpperCase();
    return [[constant, { value: column, description: `By \`${name}\`.` }] as const];
  });
  return builder.enumType(`${type}OrderField`, {
    description: `What lists of ${type} can be ordered by.`,
    values: Object.fromEntries(values),
  });
}

/** The input type for a field: the comparisons that it allows, or the filter of the record that it links to. */
function comparisonsOf(type: FilterableType, { target, isNullable }: FilterField) {
  if ('link' in target) return filterRef(target.link);
  const scalar = 'columns' in target ? fieldOf(modelOf(type), target.columns[0]).type : 'Boolean';
  return isNullable ? nullableComparisons(scalar) : comparisons(scalar);
}

/** The comparisons of values of a scalar. */
const comparisons = once((scalar: string) => createComparisons(scalar, false));
const nullableComparisons = once((scalar: string) => createComparisons(scalar, true));

const patterns = `this text, ignoring case. There are no wildcards. At most ${limits.pattern} characters.`;

/** The comparisons, by their operators. */
const descriptions = {
  eq: 'Equal to this.',
  ne: 'A value other than this.',
  in: `Equal to one of these, at most ${limits.items}. No record meets an empty list.`,
  lt: 'Below this.',
  lte: 'Below this, or equal to it.',
  gt: 'Above this.',
  gte: 'Above this, or equal to it.',
  contains: `Contains ${patterns}`,
  startsWith: `Begins with ${patterns}`,
};
const neOfNullable = `${descriptions.ne} A record without a value does not meet it: \`not\` around \`eq\` selects those as well.`;

/** The operators of each scalar. */
const operators: Readonly<Record<string, readonly (keyof typeof descriptions)[]>> = {
  Boolean: ['eq'],
  String: ['eq', 'ne', 'in', 'contains', 'startsWith'],
  Int: ['eq', 'ne', 'in', 'lt', 'lte', 'gt', 'gte'],
  Float: ['eq', 'ne', 'in', 'lt', 'lte', 'gt', 'gte'],
  DateTime: ['eq', 'ne', 'in', 'lt', 'lte', 'gt', 'gte'],
};

function createComparisons(name: string, isNullable: boolean) {
  // Pothos knows scalars by their names.
  const of = name as 'String';
  return builder.inputType(`${isNullable ? 'Nullable' : ''}${name}Filter`, {
    description: `Comparisons of ${name} values. All that are given have to be met.`,
    fields: (t) => ({
      ...Object.fromEntries(
        (operators[name] ?? []).map((operator) => [
          operator,
          t.field({
            type: operator === 'in' ? [of] : of,
            description: isNullable && operator === 'ne' ? neOfNullable : descriptions[operator],
          }),
        ]),
      ),
      ...(isNullable && {
        isNull: t.boolean({ description: 'Whether there is no value.' }),
      }),
    }),
  });
}
