/** Which fields of a type lists can be filtered and ordered by, and what of a row each stands for. */

import { EnumRef } from '@pothos/core';
import { fieldOf } from '../../database/reader/models.ts';
import { builder } from '../builder.ts';
import type { Needs } from '../loading/selection.ts';
import type { Model, ViewerRef } from '../loading/visible.ts';

/** What a field stands for, as it says itself where it is resolved. */
export type Filterable =
  /** A column, or the first of several that has a value. */
  | { readonly columns: readonly [string, ...string[]] }
  /** Whether a condition holds that is never null. */
  | { readonly holds: (viewer: ViewerRef) => object }
  /** A record, by the column that holds its id. */
  | { readonly link: Model; readonly by: string };

/** A field by which a list can be filtered. */
export interface FilterField {
  readonly name: string;
  readonly description: string;
  readonly stands: Filterable;
  readonly isNullable: boolean;
  /** The type of its values, where that is an enumeration. */
  readonly enumeration: { readonly name: string; readonly ref: Enumeration } | undefined;
}

type Enumeration = EnumRef<(typeof builder)['$inferSchemaTypes'], unknown>;

/** A list may be one of several models, which have in common what their interface has. */
export type ListedType = Model | 'Device';

/** The model of a type's rows, or any of them. */
export const modelOf = (type: ListedType): Model => (type === 'Device' ? 'DttDevice' : type);

const known = new Map<ListedType, readonly FilterField[]>();

/** The fields of a type by which lists of it can be filtered. To be called once all types have their fields. */
export function filterFields(type: ListedType): readonly FilterField[] {
  let fields = known.get(type);
  if (!fields) {
    fields = [...interfacesOf(type), type].flatMap(ownFields);
    known.set(type, fields);
  }
  return fields;
}

function interfacesOf(type: string): string[] {
  const config = builder.configStore.getTypeConfig(type);
  if (config.kind !== 'Object') return [];
  return config.interfaces.map((each) => builder.configStore.getTypeConfig(each).name);
}

function ownFields(type: string): FilterField[] {
  return [...builder.configStore.getFields(type)].flatMap(
    ([name, { type: its, extensions, description }]) => {
      const stands = standsFor(extensions ?? {});
      if (!stands || its.kind === 'List') return [];
      return [
        {
          name,
          description: description ?? '',
          stands,
          isNullable: 'nullable' in its && its.nullable === true,
          enumeration: its.ref instanceof EnumRef ? { name: its.ref.name, ref: its.ref } : undefined,
        },
      ];
    },
  );
}

function standsFor({ pothosExposedField, needs }: Readonly<Record<string, unknown>>): Filterable | undefined {
  if (typeof pothosExposedField === 'string') return { columns: [pothosExposedField] };
  // `reads.ts` and `devices.ts` alone write this extension.
  const filter = (needs as Needs | undefined)?.filter;
  // The one user whom the viewer sees is the viewer.
  return filter && 'link' in filter && filter.link === 'User' ? undefined : filter;
}

/** The type of a field's value, as the data model has it. */
export function columnType(type: ListedType, { stands }: FilterField): string {
  if ('holds' in stands) return 'Boolean';
  if ('link' in stands) return stands.link;
  return fieldOf(modelOf(type), stands.columns[0]).type;
}

/** The column that a list can be ordered by, undefined for a field that is not one column. */
export function orderColumn({ stands }: FilterField): string | undefined {
  return 'columns' in stands && stands.columns.length === 1 ? stands.columns[0] : undefined;
}

/**
 * Whether lists of the type can be ordered by a field. Not by an id: no index has those of one user in order, and PostgreSQL
 * would go through those of all users to find them. Devices of several kinds are put in order by the gateway, which does
 * not know how the database sorts text.
 */
export function isOrderable(type: ListedType, field: FilterField): boolean {
  const column = orderColumn(field);
  if (column === undefined || fieldOf(modelOf(type), column).isKey) return false;
  return type !== 'Device' || columnType(type, field) !== 'String';
}

/** What the enumeration of a list's orders calls a field: `createdAt` is CREATED_AT. */
export const orderName = ({ name }: FilterField): string =>
  name.replace(/([a-z\d])([A-Z])/g, '$1_$2').toUpperCase();
