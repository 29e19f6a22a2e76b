/** Makes of a client's `where` a condition on rows. */

import type { Viewer } from '../../auth/viewer.ts';
import { fieldOf, linkBy } from '../../database/reader/models.ts';
import { argumentError } from '../../errors.ts';
import { isText } from '../loading/cursors.ts';
import { type Model, visible } from '../loading/visible.ts';
import { bounds } from './bounds.ts';
import { type FilterField, filterFields, type ListedType, modelOf } from './filterable.ts';
import type { FilterInput } from './refs.ts';

/** Where in a filter something stands, and how much of the filter was read. */
interface Reading {
  readonly viewer: Viewer;
  conditions: number;
}

/** What nothing meets. */
const never = { id: { in: [] } };

/**
 * The condition that a filter comes to, undefined where it says nothing. It is true or false of every row, and never
 * null, so that `not` turns it around. A linked record is one that the viewer may see: there is no asking about others.
 * @throws a client error about the argument `where`.
 */
export function readFilter(
  type: ListedType,
  where: FilterInput | null | undefined,
  viewer: Viewer,
): object | undefined {
  return where == null ? undefined : readRecord(type, where, 'where', 1, { viewer, conditions: 0 });
}

function readRecord(
  type: ListedType,
  where: FilterInput,
  path: string,
  depth: number,
  reading: Reading,
): object | undefined {
  if (depth > bounds.depth) throw tooMuch(`${bounds.depth} levels of conditions`);
  if (depth > 1) count(1, reading);
  const parts = Object.entries(where).flatMap(([name, wanted]): (object | undefined)[] => {
    if (wanted === undefined) return [];
    const at = `${path}.${name}`;
    const field = filterFields(type).find((each) => each.name === name);
    // The schema has made objects of what is no comparison.
    const given = (wanted ?? saysNull(at, field)) as FilterInput;
    if (name === 'and') return readAll(type, given, at, depth, reading);
    if (name === 'or') return [either(readAll(type, given, at, depth, reading))];
    if (name === 'not') return [negated(readRecord(type, given, at, depth + 1, reading))];
    // The schema has the fields of this very list, and the three above.
    if (!field) throw new Error(`${type} cannot be filtered by ${name}`);
    return [readField(type, field, given, at, depth, reading)];
  });
  return all(parts);
}

function readAll(
  type: ListedType,
  given: unknown,
  path: string,
  depth: number,
  reading: Reading,
): (object | undefined)[] {
  return [given].flat().map((each, index) => {
    // An item of the list is an object, as the schema has it.
    return readRecord(type, each as FilterInput, `${path}[${index}]`, depth + 1, reading);
  });
}

function readField(
  type: ListedType,
  field: FilterField,
  wanted: FilterInput,
  path: string,
  depth: number,
  reading: Reading,
): object | undefined {
  const { stands } = field;
  if ('link' in stands) {
    const inner = readRecord(stands.link, wanted, path, depth + 1, reading);
    const seen = visible[stands.link](reading.viewer);
    return { [linkBy(modelOf(type), stands.by)]: inner ? { AND: [seen, inner] } : seen };
  }
  const comparisons = Object.entries(wanted).flatMap(([operator, value]): [string, unknown][] =>
    value === undefined
      ? []
      : [[operator, value ?? saysNull(`${path}.${operator}`, operator === 'isNull' ? undefined : field)]],
  );
  count(comparisons.length, reading);
  return all(
    comparisons.map(([operator, value]) => {
      checkValue(path, operator, value);
      if ('holds' in stands) {
        const holds = stands.holds(reading.viewer);
        return value === true ? holds : { NOT: holds };
      }
      return onColumns(modelOf(type), stands.columns, operator, value);
    }),
  );
}

/** What says nothing counts as well: it is a part of the statement all the same. */
function count(conditions: number, reading: Reading): void {
  reading.conditions += conditions;
  if (reading.conditions > bounds.conditions) throw tooMuch(`${bounds.conditions} conditions`);
}

/** A comparison of the first of the columns that has a value. */
function onColumns(
  model: Model,
  [column, ...others]: readonly [string, ...string[]],
  operator: string,
  value: unknown,
): object {
  const isNull = { [column]: null };
  const isHere = { [column]: { not: null } };
  const [next, ...further] = others;
  const rest = next === undefined ? undefined : onColumns(model, [next, ...further], operator, value);
  if (operator === 'isNull') {
    if (value === true) return rest ? { AND: [isNull, rest] } : isNull;
    return rest ? { OR: [isHere, rest] } : isHere;
  }
  const holds = { [column]: comparison(operator, value) };
  // So that it is false, rather than null, for a row without a value.
  const here = fieldOf(model, column).isRequired ? holds : { AND: [isHere, holds] };
  return rest ? { OR: [here, { AND: [isNull, rest] }] } : here;
}

function comparison(operator: string, value: unknown): object {
  if (operator === 'eq') return { equals: value };
  if (operator === 'in') return { in: [value].flat() };
  if (isPattern(operator))
    // LIKE has its own ideas of these.
    return { [operator]: String(value).replace(/[\\%_]/g, '\\$&'), mode: 'insensitive' };
  return { [operator]: value };
}

const isPattern = (operator: string) => operator === 'contains' || operator === 'startsWith';

function checkValue(field: string, operator: string, value: unknown): void {
  const path = `${field}.${operator}`;
  const values = [value].flat();
  if (values.length > bounds.items) throw tooMuch(`${bounds.items} items in ${path}`);
  if (isPattern(operator) && String(value).length > bounds.pattern)
    throw argumentError('where', `${path} must have at most ${bounds.pattern} characters`);
  // As a number of JSON may be, since it has no largest one.
  if (values.some((each) => typeof each === 'number' && !Number.isFinite(each)))
    throw argumentError('where', `${path} must be a finite number`);
  if (values.some((each) => typeof each === 'string' && !isText(each)))
    throw argumentError(
      'where',
      `${path} has a character that no text can have: NUL, or half a surrogate pair`,
    );
}

/** Conditions that hold together, undefined for none. */
function all(conditions: readonly (object | undefined)[]): object | undefined {
  const [first, ...others] = conditions.filter((each) => each !== undefined);
  return first && others.length > 0 ? { AND: [first, ...others] } : first;
}

/** Conditions one of which holds: undefined where one says nothing, since that always holds. */
function either(conditions: readonly (object | undefined)[]): object | undefined {
  const known = conditions.filter((each) => each !== undefined);
  if (known.length < conditions.length) return undefined;
  return known.length > 0 ? { OR: known } : never;
}

const negated = (condition: object | undefined) => (condition ? { NOT: condition } : never);

/** @param field which may be without a value, and can be asked for that in another way. */
function saysNull(path: string, field?: FilterField): never {
  const other = field && askingForNone(field);
  throw argumentError('where', `${path} must not be null${other ? `: ${other}` : ''}`);
}

function askingForNone({ name, stands, isNullable }: FilterField): string | undefined {
  if ('link' in stands) return `not: { ${name}: {} } asks for records without one`;
  return isNullable ? 'isNull asks for records without a value' : undefined;
}

function tooMuch(most: string): Error {
  return argumentError('where', `where must have at most ${most}`);
}
