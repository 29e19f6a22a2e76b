/**
 * The one table of models: who may see the rows of each, the order of its lists, and the like. Then the columns and relations of
 * each model, as statements need them, from Prisma's data model. `src/schema/types` has the fields.
 */

import type PrismaTypes from './generated/pothos.ts';
import { getDatamodel } from './generated/pothos.ts';
import type { Prisma } from './generated/prisma/client.ts';
import * as enums from './generated/prisma/enums.ts';

export type ModelName = Prisma.ModelName;

/**
 * A placeholder for a value in a query that runs many times: the query is translated to SQL once, and each run supplies the
 * values by name.
 */
export class Slot {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/** The values of the slots for one run, by name. */
export type SlotValues = Readonly<Record<string, unknown>>;

/** The viewer in a condition: an actual one, or a slot in a query that is planned once for all viewers. */
export interface ViewerRef {
  readonly id: number;
}

/** The viewer of the operation: each run of a query fills the slot. For the types, the slot is the id. */
export const currentViewer: ViewerRef = { id: new Slot('viewer') as unknown as number };

interface Model<M extends ModelName> {
  /** The condition on rows that a viewer may see. The schema cannot read a model without one. */
  readonly visibleTo?: (viewer: ViewerRef) => PrismaTypes[M]['Where'];
  /** The condition on rows that a viewer may change, where they may see more. */
  readonly writableBy?: (viewer: ViewerRef) => PrismaTypes[M]['Where'];
  /** Whether a mirror fetches its rows after the records that they belong to. Only `schema/loading` waits for them. */
  readonly isDetail?: true;
  /** Whether its rows have no global id: they are no records of their own. */
  readonly hasNoId?: true;
  /** The column of the default order of its lists, newest first (docs/rest.md#order). Without one, there are no lists. */
  readonly order?: keyof PrismaTypes[M]['Shape'];
  /** Whether `devices` lists it. */
  readonly isDevice?: true;
  /** Whether no response depends on its rows, so that no trigger announces their changes. */
  readonly isSilent?: true;
}

const owned = ({ id }: ViewerRef) => ({ ownerId: id });

/** A viewer may see the templates in their library: their own and imported ones (docs/rest.md#who-sees-what). */
const inLibrary = ({ id }: ViewerRef) => ({ libraryEntries: { some: { userId: id } } });

const ofOwnSession = (viewer: ViewerRef) => ({ session: owned(viewer) });

export const models = {
  User: { visibleTo: ({ id }) => ({ id }), order: 'id' },
  ApiToken: { visibleTo: ({ id }) => ({ userId: id }), hasNoId: true },
  // The order of the kinds breaks ties between devices of different kinds.
  DttDevice: { visibleTo: owned, order: 'lastVisited', isDevice: true },
  LkbxDevice: { visibleTo: owned, order: 'lastVisited', isDevice: true },
  OssmDevice: { visibleTo: owned, order: 'lastVisited', isDevice: true },
  DttTemplate: { visibleTo: inLibrary, writableBy: owned, order: 'createdDate' },
  DttTemplateSegment: {
    visibleTo: (viewer) => ({ template: inLibrary(viewer) }),
    writableBy: (viewer) => ({ template: owned(viewer) }),
    isDetail: true,
  },
  DttLibraryEntry: { visibleTo: ({ id }) => ({ userId: id }), hasNoId: true },
  DttSession: { visibleTo: owned, order: 'createdAt' },
  TrainerSegment: { visibleTo: ofOwnSession, isDetail: true },
  LockTemplate: { visibleTo: owned, order: 'createdAt' },
  LockSession: { visibleTo: owned, order: 'startDate' },
  LockSegment: { visibleTo: ofOwnSession },
  Mirror: { isSilent: true },
  MirroredAccount: { isSilent: true },
  RateLimit: { isSilent: true },
} as const satisfies { readonly [M in ModelName]: Model<M> };

type Models = typeof models;
type ModelWith<Property extends string> = {
  [M in ModelName]: Models[M] extends { readonly [P in Property]: unknown } ? M : never;
}[ModelName];

/** The models of which a viewer may see some rows. */
export type VisibleModel = ModelWith<'visibleTo'>;
/** Those whose rows clients see as records. */
export type RecordType = Exclude<VisibleModel, ModelWith<'hasNoId'>>;
/** Those with lists. */
export type ListedType = ModelWith<'order'>;
/** Those whose records are devices. */
export type DeviceType = ModelWith<'isDevice'>;

const modelsWith = (property: keyof Model<ModelName>) =>
  Object.entries(models).flatMap(([name, model]) => (property in model ? [name] : []));

// The names are those of the types above, which are derived from the same table.
export const tables = Object.keys(models) as ModelName[];
export const visibleModels = modelsWith('visibleTo') as VisibleModel[];
export const recordTypes = visibleModels.filter(
  (name) => !modelsWith('hasNoId').includes(name),
) as RecordType[];
export const isDetail = (model: ModelName): boolean => modelsWith('isDetail').includes(model);
export const listedTypes = modelsWith('order') as ListedType[];
export const deviceTypes = modelsWith('isDevice') as DeviceType[];
/** The tables that responses come from. */
export const announcedTables = tables.filter((table) => !modelsWith('isSilent').includes(table));

export const isRecordType = (name: string): name is RecordType => recordTypes.some((each) => each === name);

/** The condition on rows of a model that the viewer may see. Every read of records has it. */
export const visibleTo = (viewer: ViewerRef, model: RecordType): object => models[model].visibleTo(viewer);

type Condition = Readonly<Record<string, unknown>>;
interface Conditions extends Pick<Model<never>, 'isSilent'> {
  readonly visibleTo?: (viewer: ViewerRef) => Condition;
  readonly writableBy?: (viewer: ViewerRef) => Condition;
}

/**
 * The condition on rows that a viewer may see, or may change.
 * @throws for a model whose rows nobody may see.
 */
export function conditionOf(
  model: ModelName,
  viewer: ViewerRef,
  use: 'visibleTo' | 'writableBy' = 'visibleTo',
): Condition {
  const { visibleTo, [use]: condition = visibleTo }: Conditions = models[model];
  if (!condition) throw new Error(`The table of models does not say who may see a ${model}`);
  return condition(viewer);
}

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
export function listOf(model: ModelName, name: string): Relation {
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

const enumerations = new Map(Object.entries(enums).map(([name, values]) => [name, Object.keys(values)]));

/** The values of an enumeration, undefined for a type that is none. */
export const valuesOf = (type: string): readonly string[] | undefined => enumerations.get(type);

const fieldsIn = (model: string) => generated[model]?.fields ?? [];
const hasId = (model: string) => fieldsIn(model).some(({ name }) => name === 'id');

/** The columns of a table that this release knows. */
export const columnsOf = (table: ModelName): readonly string[] =>
  fieldsIn(table).flatMap(({ name, relationName }) => (relationName === undefined ? [name] : []));

type GeneratedField = ReturnType<typeof fieldsIn>[number];

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

/** The relations of a model. */
export const linksOf = (model: ModelName): readonly string[] =>
  fieldsIn(model).flatMap(({ name, relationName }) => (relationName === undefined ? [] : [name]));

/**
 * The relation of a field, if it refers to an `id`. If a foreign key has two columns, the first one identifies the row, and the
 * second one only ensures that both rows have the same owner.
 */
function relationOf(model: string, field: GeneratedField): Relation | undefined {
  const { type, isList, relationName, relationFromFields: [own] = [] } = field;
  if (relationName === undefined || !hasId(own === undefined ? model : type)) return undefined;
  const other = fieldsIn(type).find(
    (each) => each.relationName === relationName && each.relationFromFields?.length,
  );
  const there = own === undefined ? other?.relationFromFields?.[0] : 'id';
  return there === undefined ? undefined : { model: type as ModelName, isList, here: own ?? 'id', there };
}

function readFields(model: string): [string, Field][] {
  const fields = fieldsIn(model);
  return fields.flatMap((field): [string, Field][] => {
    const { name, type, isRequired } = field;
    const isKey =
      field.isId || field.isUnique || fields.some((each) => each.relationFromFields?.includes(name));
    const relation = relationOf(model, field);
    if (field.relationName !== undefined && !relation) return [];
    return [[name, { type, isRequired, isKey, ...(relation && { relation }) }]];
  });
}

const fieldsByModel = new Map(tables.map((model) => [model, new Map(readFields(model))]));
