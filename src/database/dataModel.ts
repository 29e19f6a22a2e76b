/** The columns and relations of each model, from Prisma's data model. */

import { getDatamodel } from './generated/pothos.ts';
import { type ModelName, tables } from './models.ts';

/** A relation as Prisma's client has it. Its key may have several columns, and refer to columns other than an `id`. */
export interface Relation {
  readonly model: ModelName;
  readonly isList: boolean;
  /** The columns of the key, if it is in the model of the field. */
  readonly columns: readonly string[];
  /** The field of the related model that leads back. */
  readonly inverse: string | undefined;
  /**
   * The columns by which statements join the model of the field (`here`) and the related one (`there`); undefined if neither is an
   * `id`. If a foreign key has two columns, the first one identifies the row, and the second one only ensures that both rows have
   * the same owner.
   */
  readonly join: { readonly here: string; readonly there: string } | undefined;
}

/** A column, or a relation. */
interface Field {
  readonly type: string;
  readonly isRequired: boolean;
  /** Whether it identifies the row, or another row that the row refers to. */
  readonly isKey: boolean;
  readonly relation: Relation | undefined;
}

/** @throws when the model has no such field, or one that cannot be read. */
export function fieldOf(model: ModelName, name: string): Field {
  const field = fieldsByModel.get(model)?.get(name);
  if (!field) throw new Error(`${model} has no field ${name}`);
  // In JSON these would be text, and no query of the gateway needs them.
  if (field.type === 'Bytes' || field.type === 'BigInt')
    throw new Error(`${model}.${name} is of type ${field.type}, which this module does not read`);
  return field;
}

export const hasField = (model: ModelName, name: string): boolean =>
  fieldsByModel.get(model)?.has(name) ?? false;

/** The column, qualified with the alias that its table has in the statement. */
export function columnOf(model: ModelName, name: string, table: string): string {
  if (fieldOf(model, name).relation) throw new Error(`${model}.${name} is no column`);
  return `${table}."${name}"`;
}

/** A relation to a list of rows. Statements do not nest relations to a single row: the schema loads such rows by id, in batches. */
export function listRelation(model: ModelName, name: string): Relation {
  const { relation } = fieldOf(model, name);
  if (!relation?.isList) throw new Error(`${model}.${name} is no list of rows`);
  return relation;
}

/** The link that leads to the row whose id the column holds. */
export function linkBy(model: ModelName, column: string): string {
  for (const [name, { relation }] of fieldsByModel.get(model) ?? [])
    if (relation?.join?.here === column && !relation.isList) return name;
  throw new Error(`no link of ${model} is by ${column}`);
}

/** The relation of a field; undefined for a column. */
export const relationOf = (model: ModelName, name: string): Relation | undefined =>
  fieldsByModel.get(model)?.get(name)?.relation;

const namesIn = (model: ModelName, areRelations: boolean): readonly string[] =>
  [...(fieldsByModel.get(model) ?? [])].flatMap(([name, { relation }]) =>
    (relation !== undefined) === areRelations ? [name] : [],
  );

export const relationsOf = (model: ModelName) => namesIn(model, true);

/** The columns of a table that this release knows. */
export const columnsOf = (table: ModelName) => namesIn(table, false);

/** The models as Prisma generates them. */
const generated = getDatamodel().datamodel.models;

const fieldsIn = (model: string) => generated[model]?.fields ?? [];
const hasId = (model: string) => fieldsIn(model).some(({ name }) => name === 'id');

function readRelation(model: ModelName, field: ReturnType<typeof fieldsIn>[number]): Relation | undefined {
  const { type, isList, relationName, relationFromFields: columns = [] } = field;
  if (relationName === undefined) return undefined;
  const inverse = fieldsIn(type).find((each) => each.relationName === relationName && each !== field);
  const [here = 'id'] = columns;
  const there = columns.length > 0 ? 'id' : inverse?.relationFromFields?.[0];
  const isById = hasId(columns.length > 0 ? type : model);
  const join = isById && there !== undefined ? { here, there } : undefined;
  return { model: type as ModelName, isList, columns, inverse: inverse?.name, join };
}

const readFields = (model: ModelName) =>
  fieldsIn(model).map((field, _, all): [string, Field] => {
    const { name, type, isRequired } = field;
    const isKey = field.isId || field.isUnique || all.some((each) => each.relationFromFields?.includes(name));
    return [name, { type, isRequired, isKey, relation: readRelation(model, field) }];
  });

const fieldsByModel = new Map(tables.map((model) => [model, new Map(readFields(model))]));
