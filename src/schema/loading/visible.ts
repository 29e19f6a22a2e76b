/** Which rows each viewer may see. */

import type { Prisma } from '../../database/generated/prisma/client.ts';
import { type Condition, Slot } from '../../database/reader/query.ts';

export type Model = keyof typeof visible;

/** The viewer's id, or its slot in a query that is planned once for all viewers. */
export interface ViewerRef {
  readonly id: number | Slot;
}

/** The viewer of the operation: each run of a query fills the slot. */
export const currentViewer: ViewerRef = { id: new Slot('viewer') };

export const owned = ({ id }: ViewerRef) => ({ ownerId: id });

/** A viewer may see the templates in their library: their own and imported ones (docs/rest.md#who-sees-what). */
function visibleTemplate({ id }: ViewerRef) {
  return { libraryEntries: { some: { userId: id } } };
}

/** For each model, the condition on rows that the viewer may see. */
export const visible = {
  User: ({ id }) => ({ id }),
  DttDevice: owned,
  DttTemplate: visibleTemplate,
  DttTemplateSegment: (viewer) => ({ template: visibleTemplate(viewer) }),
  DttSession: owned,
  TrainerSegment: (viewer) => ({ session: owned(viewer) }),
  LkbxDevice: owned,
  LockTemplate: owned,
  LockSession: owned,
  LockSegment: (viewer) => ({ session: owned(viewer) }),
  OssmDevice: owned,
} satisfies { [M in Prisma.ModelName]?: (viewer: ViewerRef) => Condition<M> };

export const isModel = (name: string): name is Model => Object.hasOwn(visible, name);
