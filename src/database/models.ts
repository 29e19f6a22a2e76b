/** The one table of models: who may see the rows of each, the order of its lists, and the like. `src/schema/types` has the fields. */

import type PrismaTypes from './generated/pothos.ts';
import type { Prisma } from './generated/prisma/client.ts';

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
  /** Whether its rows are no records that the reader finds by an id. */
  readonly isNoRecord?: true;
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
  User: { visibleTo: ({ id }) => ({ id }) },
  ApiToken: { visibleTo: ({ id }) => ({ userId: id }), isNoRecord: true },
  // The order of the kinds breaks ties between devices of different kinds.
  DttDevice: { visibleTo: owned, order: 'lastVisited', isDevice: true },
  LkbxDevice: { visibleTo: owned, order: 'lastVisited', isDevice: true },
  OssmDevice: { visibleTo: owned, order: 'lastVisited', isDevice: true },
  DttTemplate: { visibleTo: inLibrary, order: 'createdDate' },
  DttTemplateSegment: {
    visibleTo: (viewer) => ({ template: inLibrary(viewer) }),
  },
  DttLibraryEntry: { visibleTo: ({ id }) => ({ userId: id }), isNoRecord: true },
  DttSession: { visibleTo: owned, order: 'createdAt' },
  TrainerSegment: { visibleTo: ofOwnSession },
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
export type RecordType = Exclude<VisibleModel, ModelWith<'isNoRecord'>>;
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
  (name) => !modelsWith('isNoRecord').includes(name),
) as RecordType[];
export const listedTypes = modelsWith('order') as ListedType[];
export const deviceTypes = modelsWith('isDevice') as DeviceType[];
/** The tables that responses come from. */
export const announcedTables = tables.filter((table) => !modelsWith('isSilent').includes(table));

export const isRecordType = (name: string): name is RecordType => recordTypes.some((each) => each === name);
export const isListedType = (name: string): name is ListedType => listedTypes.some((each) => each === name);

type Condition = Readonly<Record<string, unknown>>;
interface Conditions extends Pick<Model<never>, 'isSilent'> {
  readonly visibleTo?: (viewer: ViewerRef) => Condition;
}

/**
 * The condition on rows of a model that the viewer may see. Every read of records has it.
 * @throws for a model whose rows nobody may see.
 */
export function visibleTo(viewer: ViewerRef, model: ModelName): Condition {
  const { visibleTo: condition }: Conditions = models[model];
  if (!condition) throw new Error(`The table of models does not say who may see a ${model}`);
  return condition(viewer);
}
