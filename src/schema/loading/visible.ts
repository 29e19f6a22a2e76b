/** Who sees what. */

import type { Viewer } from '../../auth/viewer.ts';
import type PrismaTypes from '../../database/generated/pothos.ts';
import type { Prisma } from '../../database/generated/prisma/client.ts';

export type Model = keyof typeof visible;

export const owned = ({ id }: Viewer) => ({ ownerId: id });

/** A viewer's templates are those in their library, which are their own and the imported ones (docs/rest.md#who-sees-what). */
function visibleTemplate({ id }: Viewer) {
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
} satisfies { [M in Prisma.ModelName]?: (viewer: Viewer) => PrismaTypes[M]['Where'] };
