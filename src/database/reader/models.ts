/** The models as statements need them: their columns, and how their rows belong together. */

import { getDatamodel } from '../generated/pothos.ts';
import * as enums from '../generated/prisma/enums.ts';
import type { Model } from './query.ts';

export interface Relation {
  readonly model: Model;
  readonly isList: boolean;
  /** The columns that are equal in rows that belong together: in the model of the field, and in the other one. */
  readonly here: string;
  readonly there: string;
}

/** A column, or a relation. */
interface Field {
  readonly type: string;
  readonly isRequired: boolean;
  /** Whether it names the row, or one that the row belongs to. */
  readonly isKey: boolean;
  readonly relation?: Relation;
}

/** @throws when the model has no such field, or one that cannot be read. */
export function fieldOf(model: Model, name: string): Field {
  const field = models.get(model)?.get(name);
  if (!field) throw new Error(`${model} has no field ${name}`);
  // Rows of JSON would have them as text, and no query of the gateway needs one.
  if (field.type === 'Bytes' || field.type === 'BigInt')
    throw new Error(`${model}.${name} is of type ${field.type}, which this module does not read`);
  return field;
}

/** The column, of a table that a statement calls by this name. */
export function columnOf(model: Model, name: string, table: string): string {
  if (fieldOf(model, name).relation) throw new Error(`${model}.${name} is no column`);
  return `${table}."${name}"`;
}

/** A relation to a list of rows. Single rows are not read beneath others: the schema loads them by their ids, in batches. */
export function listOf(model: Model, name: string): Relation {
  const { relation } = fieldOf(model, name);
  if (!relation?.isList) throw new Error(`${model}.${name} is no list of rows`);
  return relation;
}

/** The link that leads to the row whose id the column holds. */
export function linkBy(model: Model, column: string): string {
  for (const [name, { relation }] of models.get(model) ?? [])
    if (relation?.here === column && !relation.isList) return name;
  throw new Error(`no link of ${model} is by ${column}`);
}

const enumerations: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries(enums).map(([name, values]) => [name, Object.keys(values)]),
);

/** The values of an enumeration, undefined for a type that is none. */
export const valuesOf = (type: string): readonly string[] | undefined => enumerations.get(type);

/**
 * The fields of each model. A relation that leads to an `id` can be read. Where its key has two columns, the first names
 * the row, and the other says no more than that it has the same owner.
 */
function readModels(): ReadonlyMap<Model, ReadonlyMap<string, Field>> {
  // What Prisma generates has these models, and no others.
  const given = Object.entries(getDatamodel().datamodel.models) as [Model, DataModel][];
  const foreignKeyOf = (model: string, relationName: string | undefined) => {
    const [, { fields }] = given.find(([name]) => name === model) ?? ['', { fields: [] }];
    return fields.find((field) => field.relationName === relationName && field.relationFromFields?.length)
      ?.relationFromFields?.[0];
  };
  const hasId = (model: string) =>
    given.some(([name, { fields }]) => name === model && fields.some((field) => field.name === 'id'));
  return new Map(
    given.map(([model, { fields }]) => [
      model,
      new Map(
        fields.flatMap((field): [string, Field][] => {
          const { name, type, isList, isRequired, relationName, relationFromFields } = field;
          const isKey =
            field.isId || field.isUnique || fields.some((each) => each.relationFromFields?.includes(name));
          const column = { type, isRequired, isKey };
          if (relationName === undefined) return [[name, column]];
          const [own] = relationFromFields ?? [];
          if (!hasId(own === undefined ? model : type)) return [];
          const here = own ?? 'id';
          const there = own === undefined ? foreignKeyOf(type, relationName) : 'id';
          if (there === undefined) throw new Error(`${model}.${name} leads nowhere`);
          return [[name, { ...column, relation: { model: type as Model, isList, here, there } }]];
        }),
      ),
    ]),
  );
}

interface DataModel {
  readonly fields: readonly {
    readonly name: string;
    readonly type: string;
    readonly isList: boolean;
    readonly isRequired: boolean;
    readonly isId: boolean;
    readonly isUnique: boolean;
    readonly relationName?: string;
    readonly relationFromFields?: readonly string[];
  }[];
}

const models = readModels();
