/** Who sees what. */

import type { Prisma } from '../../database/generated/prisma/client.ts';
import { type Condition, Slot } from '../../database/reader/query.ts';

export type Model = keyof typeof visible;

/** Who asks, or the place of their id in a query that serves every viewer. */
export interface ViewerRef {
  readonly id: number | Slot;
}

/** Whoever asks: each run of a query says who. */
export const currentViewer: ViewerRef = { id: new Slot('viewer') };

export const owned = ({ id }: ViewerRef) => ({ ownerId: id });

/** A viewer's templates are those in their library, which are their own and the imported ones (docs/rest.md#who-sees-what). */
function visibleTemplate({ id }: ViewerRef) {
  return { libraryEntries: { some: { userId: id } } };
}

/** For each model, the rows that exist for the viewer. */
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
