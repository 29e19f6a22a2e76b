/** The fields by which the lists of a type can be filtered and ordered, and what each field means in the database. */

import { EnumRef } from '@pothos/core';
import { fieldOf, type ListedType, type ViewerRef } from '../../database/models.ts';
import { builder } from '../builder.ts';
import type { FieldRequirements } from '../loading/selection.ts';
import type { FilterInput, OrderInput } from './filter.ts';

/** What a field of a filter means in the database. */
export type FilterTarget =
  /** A column, or the first of several columns that has a value. */
  | { readonly columns: readonly [string, ...string[]] }
  /** Whether a condition holds. The condition must never be null in SQL. */
  | { readonly condition: (viewer: ViewerRef) => object }
  /** A linked record, by the column that holds its id. */
  | { readonly link: ListedType; readonly by: string };

/** A field by which a list can be filtered. */
export interface FilterField {
  readonly name: string;
  readonly description: string;
  readonly target: FilterTarget;
  readonly isNullable: boolean;
  /** The enumeration that its values are of, if there is one. */
  readonly enumeration: { readonly name: string; readonly ref: Enumeration } | undefined;
}

type Enumeration = EnumRef<(typeof builder)['$inferSchemaTypes'], unknown>;

/** The records of a list: those of a model, or devices of all kinds, which share the fields of their interface. */
export type FilterableType = ListedType | 'Device';

/** The model of a listed type. For devices of all kinds it is one of the kinds: the shared columns are the same in each. */
export const modelOf = (type: FilterableType): ListedType => (type === 'Device' ? 'DttDevice' : type);

function onceForType<Value>(make: (type: FilterableType) => Value): (type: FilterableType) => Value {
  const made = new Map<FilterableType, Value>();
  return (type) => {
    const value = made.get(type) ?? make(type);
    made.set(type, value);
    return value;
  };
}

/** The input type of `where`. `types.ts` implements it and the next once all types have their fields. */
export const filterRef = onceForType((type) => builder.inputRef<FilterInput>(`${type}Filter`));

/** The input type of the items of `orderBy`. */
export const orderRef = onceForType((type) => builder.inputRef<OrderInput>(`${type}Order`));

/** The fields by which lists of a type can be filtered. Must not be called before all types have their fields. */
export const filterFields = onceForType((type): readonly FilterField[] =>
  [...interfacesOf(type), type].flatMap(ownFields),
);

function interfacesOf(type: string): string[] {
  const config = builder.configStore.getTypeConfig(type);
  if (config.kind !== 'Object') return [];
  return config.interfaces.map((each) => builder.configStore.getTypeConfig(each).name);
}

function ownFields(type: string): FilterField[] {
  return [...builder.configStore.getFields(type)].flatMap(
    ([name, { type: its, extensions, description }]) => {
      const target = targetOf(extensions ?? {});
      if (!target || its.kind === 'List') return [];
      return [
        {
          name,
          description: description ?? '',
          target,
          isNullable: 'nullable' in its && its.nullable === true,
          enumeration: its.ref instanceof EnumRef ? { name: its.ref.name, ref: its.ref } : undefined,
        },
      ];
    },
  );
}

function targetOf({
  pothosExposedField,
  needs,
}: Readonly<Record<string, unknown>>): FilterTarget | undefined {
  if (typeof pothosExposedField === 'string') return { columns: [pothosExposedField] };
  // Only `reads.ts` and `devices.ts` write this extension.
  const filter = (needs as FieldRequirements | undefined)?.filter;
  // The viewer sees no other user than themselves, so a filter by a user would be pointless.
  return filter && 'link' in filter && filter.link === 'User' ? undefined : filter;
}

/** The type of a field's value in the data model. */
export function columnType(type: FilterableType, { target }: FilterField): string {
  if ('condition' in target) return 'Boolean';
  if ('link' in target) return target.link;
  return fieldOf(modelOf(type), target.columns[0]).type;
}

/** The column that a list can be ordered by, undefined for a field that is not one column. */
export function orderColumn({ target }: FilterField): string | undefined {
  return 'columns' in target && target.columns.length === 1 ? target.columns[0] : undefined;
}

/**
 * Whether lists of the type can be ordered by a field. They cannot be ordered by id: no index has the ids of one user in
 * order, so PostgreSQL would scan the rows of all users. Devices of several kinds cannot be ordered by text, since the
 * gateway merges them and does not know the collation of the database.
 */
export function isOrderable(type: FilterableType, field: FilterField): boolean {
  const column = orderColumn(field);
  if (column === undefined || fieldOf(modelOf(type), column).isKey) return false;
  return type !== 'Device' || columnType(type, field) !== 'String';
}

/** The name of a field in the enumeration of fields to order by: `createdAt` is CREATED_AT. */
export const orderName = ({ name }: FilterField): string =>
  name.replace(/([a-z\d])([A-Z])/g, '$1_$2').toUpperCase();
