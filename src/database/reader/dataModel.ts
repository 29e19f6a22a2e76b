/** The columns and relations of each model, as statements need them. */

import { getDatamodel } from '../generated/pothos.ts';
import * as enums from '../generated/prisma/enums.ts';
import type { ModelName } from './query.ts';

export interface Relation {
  readonly model: ModelName;
  readonly isList: boolean;
  /** The columns that the relation joins by: `here` is in the model of the field, `there` in the related model. */
  readonly here: string;
  readonly there: string;
}

/** A column, or a relation. */
interface Field {
  readonly type: string;
  readonly isRequired: boolean;
  /** Whether it identifies the row, or another row that the row refers to. */
  readonly isKey: boolean;
  readonly relation?: Relation;
}

/** @throws when the model has no such field, or one that cannot be read. */
export function fieldOf(model: ModelName, name: string): Field {
  const field = models.get(model)?.get(name);
  if (!field) throw new Error(`${model} has no field ${name}`);
  // In JSON these would be text, and no query of the gateway needs them.
  if (field.type === 'Bytes' || field.type === 'BigInt')
    throw new Error(`${model}.${name} is of type ${field.type}, which this module does not read`);
  return field;
}

export const hasField = (model: ModelName, name: string): boolean => models.get(model)?.has(name) ?? false;

/** The column, qualified with the alias that its table has in the statement. */
export function columnOf(model: ModelName, name: string, table: string): string {
  if (fieldOf(model, name).relation) throw new Error(`${model}.${name} is no column`);
  return `${table}."${name}"`;
}

/** A relation to a list of rows. Statements do not nest relations to a single row: the schema loads such rows by id, in batches. */
export function listOf(model: ModelName, name: string): Relation {
  const { relation } = fieldOf(model, name);
  if (!relation?.isList) throw new Error(`${model}.${name} is no list of rows`);
  return relation;
}

/** The link that leads to the row whose id the column holds. */
export function linkBy(model: ModelName, column: string): string {
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
 * The fields of each model, with the relations that refer to an `id`. If a foreign key has two columns, the first one
 * identifies the row, and the second one only ensures that both rows have the same owner.
 */
function readModels(): ReadonlyMap<ModelName, ReadonlyMap<string, Field>> {
  // The data model that Prisma generates has exactly the models of the type.
  const given = Object.entries(getDatamodel().datamodel.models) as [ModelName, DataModel][];
  const fieldsOf = new Map<string, DataModel['fields']>(given.map(([model, { fields }]) => [model, fields]));
  const hasId = (model: string) => fieldsOf.get(model)?.some(({ name }) => name === 'id');
  function relationOf(model: string, { type, isList, relationName, relationFromFields = [] }: DataField) {
    const [own] = relationFromFields;
    if (relationName === undefined || !hasId(own === undefined ? model : type)) return undefined;
    const other = fieldsOf
      .get(type)
      ?.find((field) => field.relationName === relationName && field.relationFromFields?.length);
    const there = own === undefined ? other?.relationFromFields?.[0] : 'id';
    if (there === undefined) throw new Error(`${model} has a relation to ${type} that leads nowhere`);
    return { model: type as ModelName, isList, here: own ?? 'id', there };
  }
  const read = (model: string, fields: readonly DataField[]) =>
    fields.flatMap((field): [string, Field][] => {
      const { name, type, isRequired } = field;
      const isKey =
        field.isId || field.isUnique || fields.some((each) => each.relationFromFields?.includes(name));
      const relation = relationOf(model, field);
      if (field.relationName !== undefined && !relation) return [];
      return [[name, { type, isRequired, isKey, ...(relation && { relation }) }]];
    });
  return new Map(given.map(([model, { fields }]) => [model, new Map(read(model, fields))]));
}

interface DataField {
  readonly name: string;
  readonly type: string;
  readonly isList: boolean;
  readonly isRequired: boolean;
  readonly isId: boolean;
  readonly isUnique: boolean;
  readonly relationName?: string;
  readonly relationFromFields?: readonly string[];
}

interface DataModel {
  readonly fields: readonly DataField[];
}

const models = readModels();
