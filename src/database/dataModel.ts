/** The columns and relations of each model, as statements need them, from Prisma's data model. */

import { getDatamodel } from './generated/pothos.ts';
import { type ModelName, tables } from './models.ts';

/** A relation that statements can join by one column of each model, one of which is the `id`. */
export interface Relation extends Pick<Link, 'model' | 'isList'> {
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
    if (relation?.here === column && !relation.isList) return name;
  throw new Error(`no link of ${model} is by ${column}`);
}

/** The models as Prisma generates them. */
const generated = getDatamodel().datamodel.models;

const fieldsIn = (model: string) => generated[model]?.fields ?? [];
const hasId = (model: string) => fieldsIn(model).some(({ name }) => name === 'id');

/** The columns of a table that this release knows. */
export const columnsOf = (table: ModelName): readonly string[] =>
  fieldsIn(table).flatMap(({ name, relationName }) => (relationName === undefined ? [name] : []));

/** A relation as Prisma's client has it. Its key may have several columns, and refer to columns other than an `id`. */
export interface Link {
  readonly model: ModelName;
  readonly isList: boolean;
  /** The columns of the key, if it is in the model of the field. */
  readonly columns: readonly string[];
  /** The field of the related model that leads back. */
  readonly inverse: string | undefined;
}

/** The relation of a field, undefined for a column. */
export function linkOf(model: ModelName, name: string): Link | undefined {
  const field = fieldsIn(model).find((each) => each.name === name);
  if (field?.relationName === undefined) return undefined;
  const { type, isList, relationName, relationFromFields: columns = [] } = field;
  const inverse = fieldsIn(type).find((each) => each.relationName === relationName && each !== field)?.name;
  return { model: type as ModelName, isList, columns, inverse };
}

export const linksOf = (model: ModelName): readonly string[] =>
  fieldsIn(model).flatMap(({ name, relationName }) => (relationName === undefined ? [] : [name]));

/**
 * The relation of a field, if it refers to an `id`. If a foreign key has two columns, the first one identifies the row, and the
 * second one only ensures that both rows have the same owner.
 */
function relationOf(model: ModelName, name: string): Relation | undefined {
  const link = linkOf(model, name);
  if (!link) return undefined;
  const [own] = link.columns;
  const other = link.inverse === undefined ? undefined : linkOf(link.model, link.inverse);
  const there = own === undefined ? other?.columns[0] : 'id';
  if (there === undefined || !hasId(own === undefined ? model : link.model)) return undefined;
  return { model: link.model, isList: link.isList, here: own ?? 'id', there };
}

function readFields(model: ModelName): [string, Field][] {
  const fields = fieldsIn(model);
  return fields.flatMap((field): [string, Field][] => {
    const { name, type, isRequired } = field;
    const isKey =
      field.isId || field.isUnique || fields.some((each) => each.relationFromFields?.includes(name));
    const relation = relationOf(model, name);
    if (field.relationName !== undefined && !relation) return [];
    return [[name, { type, isRequired, isKey, ...(relation && { relation }) }]];
  });
}

const fieldsByModel = new Map(tables.map((model) => [model, new Map(readFields(model))]));
