/** Implements the input types of filters and orders, from the fields of the listed types. */

import { listedTypes } from '../../database/models.ts';
import { builder } from '../builder.ts';
import {
  bounds,
  columnType,
  type FilterableType,
  type FilterField,
  filterFields,
  filterRef,
  isOrderable,
  orderName,
  orderRef,
} from './filter.ts';

const filterable: readonly FilterableType[] = [...listedTypes, 'Device'];

const direction = builder.enumType('OrderDirection', {
  description: 'Which way a list is ordered. Records without a value come last in both directions.',
  values: {
    ASC: { description: 'Lowest, earliest or first in the alphabet first.' },
    DESC: { description: 'Highest, latest or last in the alphabet first.' },
  } as const,
});

// Pothos calls the thunks once all types have their fields.
for (const type of filterable) {
  filterRef(type).implement({
    description:
      `Conditions on a ${type}. All that are given have to be met, and \`{}\` is met by every record. A record without a value meets no ` +
      `comparison, \`not\` included; \`isNull\` asks for it. At most ${bounds.conditions} conditions, ${bounds.depth} levels deep.`,
    fields: (t) => ({
      ...Object.fromEntries(
        filterFields(type).map((field) => [
          field.name,
          t.field({ type: comparisonsOf(type, field), description: describe(field) }),
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

const describe = ({ target, description }: FilterField): string =>
  'link' in target ? `${description} The record must have one that meets this filter.` : description;

function orderFields(type: FilterableType) {
  const fields = filterFields(type).filter((field) => isOrderable(type, field));
  return builder.enumType(`${type}OrderField`, {
    description: `What lists of ${type} can be ordered by.`,
    values: Object.fromEntries(
      fields.map((field) => [orderName(field), { description: `By \`${field.name}\`.` }]),
    ),
  });
}

/** The input type for a field: the comparisons that it allows, or the filter of the record that it links to. */
function comparisonsOf(type: FilterableType, field: FilterField) {
  if ('link' in field.target) return filterRef(field.target.link);
  const name = field.enumeration?.name ?? columnType(type, field);
  const key = `${field.isNullable ? 'Nullable' : ''}${name}Filter`;
  const input = comparisons.get(key) ?? createComparisons(key, name, field);
  comparisons.set(key, input);
  return input;
}

const comparisons = new Map<string, ReturnType<typeof createComparisons>>();

/** @param name the name of a scalar or an enumeration. */
function createComparisons(key: string, name: string, { isNullable, enumeration }: FilterField) {
  const isOrdered = ['Int', 'Float', 'DateTime'].includes(name);
  // A type that is no enumeration is a scalar, which Pothos knows by its name.
  const of = enumeration?.ref ?? (name as 'String');
  return builder.inputType(key, {
    description: `Comparisons of a ${name}. All that are given have to be met.`,
    fields: (t) => ({
      eq: t.field({ type: of, description: 'Equal to this.' }),
      ...(name !== 'Boolean' && {
        not: t.field({ type: of, description: 'A value other than this.' }),
        in: t.field({
          type: [of],
          description: `Equal to one of these, at most ${bounds.items}. No record meets an empty list.`,
        }),
      }),
      ...(isOrdered && {
        lt: t.field({ type: of, description: 'Below this.' }),
        lte: t.field({ type: of, description: 'Below this, or equal to it.' }),
        gt: t.field({ type: of, description: 'Above this.' }),
        gte: t.field({ type: of, description: 'Above this, or equal to it.' }),
      }),
      ...(name === 'String' && {
        contains: t.string({
          description: 'Contains this text, ignoring case. There are no wildcards.',
        }),
        startsWith: t.string({
          description: 'Begins with this text, ignoring case. There are no wildcards.',
        }),
      }),
      ...(isNullable && {
        isNull: t.boolean({ description: 'Whether there is no value.' }),
      }),
    }),
  });
}
